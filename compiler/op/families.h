// The families of the operator table, one file each; registry.cc joins them. A new operator is a row in its family's
// file; a new family is a file and one line here and in registry.cc.
#pragma once

#include <vector>

#include "compiler/op/registry.h"

namespace ingot::op {

std::vector<OpRow> ElementwiseOps();      // one or more tensors, element by element
std::vector<OpRow> BatchNormOps();        // batch normalisation
std::vector<OpRow> BinaryOps();           // two tensors with broadcasting
std::vector<OpRow> CreateOps();           // tensors from shapes and scalars
std::vector<OpRow> DynamicShapeOps();     // dynamic output shapes (data-dependent): nonzero, unique, ...
std::vector<OpRow> ShapeOps();            // shapes as tensors
std::vector<OpRow> TransformOps();        // views and moves: reshape, permute, slice, pad, ...
std::vector<OpRow> ReductionOps();        // sum, max, softmax, ...
std::vector<OpRow> ActivationOps();       // activation functions with parameters
std::vector<OpRow> NormalizationOps();    // layer, RMS, group, instance and local response normalisation
std::vector<OpRow> LinearOps();           // matmul
std::vector<OpRow> ByteProductOps();      // matrix products of 8-bit integers
std::vector<OpRow> WordConvolutionOps();  // convolutions of integers, several in each word
std::vector<OpRow> PackedElementOps();    // elements of less than a byte, and bits under another dtype
std::vector<OpRow> EinsumOps();           // Einstein's summation
std::vector<OpRow> AttentionOps();        // scaled dot-product attention
std::vector<OpRow> ConvolutionOps();      // convolution and pooling
std::vector<OpRow> ImageBlockOps();       // sums of overlapping blocks
std::vector<OpRow> PoolIndicesOps();      // where the values of a max pool come from
std::vector<OpRow> WinogradOps();         // the transformations of Winograd's convolution
std::vector<OpRow> RecurrentOps();        // the scans of LSTM, GRU and plain recurrent layers
std::vector<OpRow> AntialiasOps();        // weights of a resize with antialias
std::vector<OpRow> WindowSumOps();        // sums over windows anywhere on an axis
std::vector<OpRow> DeterminantOps();      // determinants
std::vector<OpRow> LinearAttentionOps();  // attention by a state instead of keys and values
std::vector<OpRow> TreeOps();             // decision trees
std::vector<OpRow> CouplingOps();         // class probabilities out of those of pairs
std::vector<OpRow> VisionOps();           // object detection
std::vector<OpRow> ResizeOps();           // resize, grid sampling
std::vector<OpRow> ControlOps();          // closures, messages, assertions, shapes out of tensors
std::vector<OpRow> CallOps();             // call_tir and its like, shape_of
std::vector<OpRow> IndexingOps();         // elements at data-dependent places: take, gather, one_hot
std::vector<OpRow> MovementOps();         // split, tile, flip, ..., arange
std::vector<OpRow> OrderingOps();         // arg-max, sort, top-k, cumulative sums
std::vector<OpRow> ScatterOps();          // elements to data-dependent places
std::vector<OpRow> CacheOps();            // caches that calls fill step by step
std::vector<OpRow> MemoryOps();           // buffers, from destination passing on

}  // namespace ingot::op
