// Operators of object detection.
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"

namespace ingot::importer {
namespace {

// Until opset 15 boxes are not shifted by half an element.
Outputs RoiAlign(const NodeImporter& node) {
  std::vector<Expr> args;
  for (size_t i : {0, 1, 2}) {
    INGOT_ASSIGN_OR_RETURN(Expr arg, node.Input(i));
    args.push_back(std::move(arg));
  }
  const char* default_places = node.opset() < 16 ? "output_half_pixel" : "half_pixel";
  INGOT_ASSIGN_OR_RETURN(const std::string places, node.String("coordinate_transformation_mode", default_places));
  INGOT_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "avg"));
  INGOT_ASSIGN_OR_RETURN(const int64_t height, node.Int("output_height", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t width, node.Int("output_width", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t samples, node.Int("sampling_ratio", 0));
  INGOT_ASSIGN_OR_RETURN(const double scale, node.Float("spatial_scale", 1));
  if (places != "half_pixel" && places != "output_half_pixel") {
    return node.Invalid("coordinate_transformation_mode is \"" + places + "\"");
  }
  return One(node.Call("vision.roi_align", args,
                       {{"pooled_size", AttrValue::Ints({height, width})},
                        {"spatial_scale", scale},
                        {"sample_ratio", samples},
                        {"aligned", places == "half_pixel"},
                        {"mode", mode}}));
}

constexpr OnnxOpRow kVisionRows[] = {
    {"RoiAlign", nullptr, RoiAlign},
};

}  // namespace

std::span<const OnnxOpRow> VisionOnnxOps() { return kVisionRows; }

}  // namespace ingot::importer
