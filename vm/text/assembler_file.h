// The part of the assembler that reads bytes, from the text or from a file beside it, and what a file holds besides its
// program (vm/program/file_form.h). It reads from the assembler's cursor, which keeps the first error. Sections are
// checked when the file is written.
#pragma once

#include <string>

#include "runtime/shared_bytes.h"
#include "vm/program/file_form.h"
#include "vm/text/text_cursor.h"

namespace ingot::vm {

class FileParser {
 public:
  // `directory` is the folder of the text's file; empty when the text is in no file.
  FileParser(TextCursor& in, const std::string& directory) : in_(in), directory_(directory) {}

  // Each is called when the word that begins its declaration has been read.
  void ParseBlobs();
  void ParseSection();
  void ParseLauncher();
  void SetStripped() { form_.debug_map = false; }

  // hex "00ff" "01"..., or blob OFFSET size N.
  SharedBytes ParseBlob();

  FileForm TakeForm() { return std::move(form_); }

 private:
  SharedBytes ParseHex();
  SharedBytes ParsePieceOfBlobs();

  TextCursor& in_;
  const std::string directory_;
  SharedBytes blobs_;
  bool has_blobs_ = false;
  FileForm form_;
};

}  // namespace ingot::vm
