// XGBoost (https://xgboost.readthedocs.io) by the functions of its C API, which have stayed the same since version 1.0.
#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "compiler/tune/cost_model.h"

namespace ingot::tune {
namespace {

using Handle = void*;

// The functions of c_api.h that are called here.
struct XgboostApi {
  const char* (*get_last_error)();
  int (*matrix_create)(const float* data, uint64_t rows, uint64_t columns, float missing, Handle* out);
  int (*matrix_free)(Handle matrix);
  int (*matrix_set_floats)(Handle matrix, const char* field, const float* values, uint64_t count);
  int (*matrix_set_uints)(Handle matrix, const char* field, const unsigned* values, uint64_t count);
  int (*booster_create)(const Handle matrices[], uint64_t count, Handle* out);
  int (*booster_free)(Handle booster);
  int (*booster_set_param)(Handle booster, const char* name, const char* value);
  int (*booster_update)(Handle booster, int iteration, Handle matrix);
  int (*booster_predict)(Handle booster, Handle matrix, int options, unsigned tree_limit, int training, uint64_t* count,
                         const float** values);

  Status Check(int result) const {
    return result == 0 ? Status() : Status(StatusCode::kFailed, std::string("XGBoost: ") + get_last_error());
  }
};

template <typename Function>
Status FindFunction(Handle library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function != nullptr) return Status();
  return Status(StatusCode::kNotFound, std::string("libxgboost has no function ") + name);
}

class XgboostModel : public CostModel {
 public:
  explicit XgboostModel(const XgboostApi& api) : api_(api) {}
  ~XgboostModel() override { Forget(); }
  XgboostModel(const XgboostModel&) = delete;
  XgboostModel& operator=(const XgboostModel&) = delete;

  Status Fit(const std::vector<Group>& groups) override {
    Forget();
    std::vector<Features> rows;
    std::vector<float> labels;
    std::vector<unsigned> sizes;
    for (const Group& group : groups) {
      if (group.seconds.empty()) continue;
      const double fastest = *std::ranges::min_element(group.seconds);
      for (const double seconds : group.seconds) labels.push_back(static_cast<float>(fastest / seconds));
      rows.insert(rows.end(), group.features.begin(), group.features.end());
      sizes.push_back(static_cast<unsigned>(group.seconds.size()));
    }
    Matrix matrix(api_);
    INGOT_RETURN_IF_ERROR(matrix.Set(rows));
    INGOT_RETURN_IF_ERROR(api_.Check(api_.matrix_set_floats(matrix.handle, "label", labels.data(), labels.size())));
    INGOT_RETURN_IF_ERROR(api_.Check(api_.matrix_set_uints(matrix.handle, "group", sizes.data(), sizes.size())));
    INGOT_RETURN_IF_ERROR(api_.Check(api_.booster_create(&matrix.handle, 1, &booster_)));
    // One thread and one seed: the same records give the same model.
    constexpr std::pair<const char*, const char*> kParameters[] = {{"objective", "rank:pairwise"},
                                                                   {"max_depth", "4"},
                                                                   {"eta", "0.2"},
                                                                   {"min_child_weight", "0"},
                                                                   {"nthread", "1"},
                                                                   {"seed", "0"},
                                                                   {"verbosity", "0"}};
    for (const auto& [name, value] : kParameters) {
      INGOT_RETURN_IF_ERROR(api_.Check(api_.booster_set_param(booster_, name, value)));
    }
    constexpr int kRounds = 40;
    for (int i = 0; i < kRounds; ++i) {
      INGOT_RETURN_IF_ERROR(api_.Check(api_.booster_update(booster_, i, matrix.handle)));
    }
    return Status();
  }

  Result<std::vector<double>> Scores(const std::vector<Features>& features) const override {
    Matrix matrix(api_);
    INGOT_RETURN_IF_ERROR(matrix.Set(features));
    uint64_t count = 0;
    const float* values = nullptr;
    INGOT_RETURN_IF_ERROR(api_.Check(api_.booster_predict(booster_, matrix.handle, 0, 0, 0, &count, &values)));
    return std::vector<double>(values, values + count);
  }

 private:
  struct Matrix {
    explicit Matrix(const XgboostApi& functions) : api(functions) {}
    ~Matrix() {
      if (handle != nullptr) api.matrix_free(handle);
    }
    Matrix(const Matrix&) = delete;
    Matrix& operator=(const Matrix&) = delete;
    Status Set(const std::vector<Features>& rows) {
      std::vector<float> values;
      for (const Features& row : rows) values.insert(values.end(), row.begin(), row.end());
      return api.Check(api.matrix_create(values.data(), rows.size(), rows.empty() ? 0 : rows[0].size(),
                                         std::numeric_limits<float>::quiet_NaN(), &handle));
    }
    const XgboostApi& api;
    Handle handle = nullptr;
  };

  void Forget() {
    if (booster_ != nullptr) api_.booster_free(booster_);
    booster_ = nullptr;
  }

  const XgboostApi api_;
  Handle booster_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<CostModel>> LoadXgboostModel() {
  Handle library = nullptr;
  for (const char* name : {"libxgboost.so.0", "libxgboost.so"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);  // stays loaded
  }
  if (library == nullptr) return Status(StatusCode::kNotFound, dlerror());
  XgboostApi api{};
  INGOT_RETURN_IF_ERROR(FindFunction(library, "XGBGetLastError", api.get_last_error));
  INGOT_RETURN_IF_ERROR(FindFunction(library, "XGDMatrixCreateFromMat", api.matrix_create));
  INGOT_RETURN_IF_ERROR(FindFunction(library, "XGDMatrixFree", api.matrix_free));
  INGOT_RETURN_IF_ERROR(FindFunction(library, "XGDMatrixSetFloatInfo", api.matrix_set_floats));
  INGOT_RETURN_IF_ERROR(FindFunction(library, "XGDMatrixSetUIntInfo", api.matrix_set_uints));
  INGOT_RETURN_IF_ERROR(FindFunction(library, "XGBoosterCreate", api.booster_create));
  INGOT_RETURN_IF_ERROR(FindFunction(library, "XGBoosterFree", api.booster_free));
  INGOT_RETURN_IF_ERROR(FindFunction(library, "XGBoosterSetParam", api.booster_set_param));
  INGOT_RETURN_IF_ERROR(FindFunction(library, "XGBoosterUpdateOneIter", api.booster_update));
  INGOT_RETURN_IF_ERROR(FindFunction(library, "XGBoosterPredict", api.booster_predict));
  return std::unique_ptr<CostModel>(std::make_unique<XgboostModel>(api));
}

}  // namespace ingot::tune
