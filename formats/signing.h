// Making keys and signatures (formats/signature.h): what vm-compile --sign and vm-inspect --sign do, and no loader.
// Keys are files of one line of text: the secret one "ingot-secret-key HEX", readable by its owner alone, the public
// one its 64 hex digits. Without libsodium every function here fails and says so.
#pragma once

#include <string>

#include "formats/container_writer.h"
#include "formats/signature.h"

namespace ingot::formats {

// Writes a new pair to `path` and `path`.pub; neither may exist.
Status MakeKeyPair(const std::string& path);

// Adds a signature over the sections that the container has.
Status SignContainer(ContainerWriter& container, const std::string& secret_key_path);

// A public key by its 64 hex digits, or by the file that holds them.
Result<PublicKey> ReadPublicKey(const std::string& hex_or_path);

}  // namespace ingot::formats
