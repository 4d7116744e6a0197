// Creation of an instance: it starts its own threads, or uses the embedder's parallel_for.
#include "vm/run/instance.h"

namespace ingot::vm {

Result<std::shared_ptr<Instance>> Instance::Create(InstanceOptions options) {
  std::shared_ptr<Instance> instance(new Instance(std::move(options)));
  if (instance->options_.hook.parallel_for != nullptr) {
    INGOT_ASSIGN_OR_RETURN(instance->pool_, ThreadPool::CreateWithHook(instance->options_.hook));
  } else {
    INGOT_ASSIGN_OR_RETURN(instance->pool_, ThreadPool::Create(instance->options_.num_threads));
  }
  return instance;
}

}  // namespace ingot::vm
