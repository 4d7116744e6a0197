// The families of the table of ONNX operators, one file each; onnx_ops.cc joins them. A new operator is an entry in its
// family's file; a new family is a file, and one line here and in onnx_ops.cc.
#pragma once

#include <span>

#include "compiler/importer/onnx_ops.h"

namespace ingot::importer {

// The domain of the operators that ONNX Runtime adds to ONNX's own, and that its tools write.
inline constexpr std::string_view kMicrosoft = "com.microsoft";

std::span<const OnnxOpRow> ActivationOnnxOps();
std::span<const OnnxOpRow> AttentionOnnxOps();
std::span<const OnnxOpRow> BlocksOnnxOps();
std::span<const OnnxOpRow> ChannelBlockOnnxOps();
std::span<const OnnxOpRow> ColumnOnnxOps();
std::span<const OnnxOpRow> CompositeOnnxOps();
std::span<const OnnxOpRow> ConvolutionOnnxOps();
std::span<const OnnxOpRow> DeformableOnnxOps();
std::span<const OnnxOpRow> DiffusionOnnxOps();
std::span<const OnnxOpRow> DynamicShapeOnnxOps();
std::span<const OnnxOpRow> EarlyOnnxOps();
std::span<const OnnxOpRow> EinsumOnnxOps();
std::span<const OnnxOpRow> ElementwiseOnnxOps();
std::span<const OnnxOpRow> ExpertOnnxOps();
std::span<const OnnxOpRow> FormOnnxOps();
std::span<const OnnxOpRow> FusedOnnxOps();
std::span<const OnnxOpRow> GateOnnxOps();
std::span<const OnnxOpRow> GroupOnnxOps();
std::span<const OnnxOpRow> HeadsOnnxOps();
std::span<const OnnxOpRow> IndexingOnnxOps();
std::span<const OnnxOpRow> LinearOnnxOps();
std::span<const OnnxOpRow> LossOnnxOps();
std::span<const OnnxOpRow> MlEncoderOnnxOps();
std::span<const OnnxOpRow> MlFeatureOnnxOps();
std::span<const OnnxOpRow> MlLinearOnnxOps();
std::span<const OnnxOpRow> NgramOnnxOps();
std::span<const OnnxOpRow> NormalizationOnnxOps();
std::span<const OnnxOpRow> PaddingOnnxOps();
std::span<const OnnxOpRow> PartOnnxOps();
std::span<const OnnxOpRow> PictureOnnxOps();
std::span<const OnnxOpRow> QLinearOnnxOps();
std::span<const OnnxOpRow> QuantizationOnnxOps();
std::span<const OnnxOpRow> RandomOnnxOps();
std::span<const OnnxOpRow> RecurrentOnnxOps();
std::span<const OnnxOpRow> ReductionOnnxOps();
std::span<const OnnxOpRow> ResizeOnnxOps();
std::span<const OnnxOpRow> ScoreOnnxOps();
std::span<const OnnxOpRow> SignalOnnxOps();
std::span<const OnnxOpRow> StreamingOnnxOps();
std::span<const OnnxOpRow> StringOnnxOps();
std::span<const OnnxOpRow> SvmOnnxOps();
std::span<const OnnxOpRow> TrainingOnnxOps();
std::span<const OnnxOpRow> TransformOnnxOps();
std::span<const OnnxOpRow> TreeOnnxOps();
std::span<const OnnxOpRow> VisionOnnxOps();

}  // namespace ingot::importer
