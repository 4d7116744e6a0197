// The part of the assembler that reads bytes, in the text or in a file beside it, and what a file holds besides its
// program (vm/file_form.h). It reads from the assembler's cursor, where errors stick; whether sections are sound is
// found when they are written.
#pragma once

#include <string>

#include "runtime/shared_bytes.h"
#include "vm/file_form.h"
#include "vm/text_cursor.h"

namespace ingot::vm {

class FileParser {
 public:
  // `directory` of the text; empty: it is in no file.
  FileParser(TextCursor& in, const std::string& directory) : in_(in), directory_(directory) {}

  // Each after the word that begins it.
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
