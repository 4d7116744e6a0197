// ReadPublicKey of formats/signing.h. A file of its own, so that a tool which only checks signatures links no code that
// makes them.
#include <string_view>

#include "formats/byte_reader.h"
#include "formats/file.h"
#include "formats/signing.h"

namespace ingot::formats {

Result<PublicKey> ReadPublicKey(const std::string& hex_or_path) {
  PublicKey key;
  if (FromHex(hex_or_path, key)) return key;
  INGOT_ASSIGN_OR_RETURN(const SharedBytes file, MapFile(hex_or_path));
  std::string_view text = AsText(file.bytes);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  if (FromHex(text, key)) return key;
  return Status(StatusCode::kBadInput, {hex_or_path, ": expected a public key, a line of 64 hex digits"});
}

}  // namespace ingot::formats
