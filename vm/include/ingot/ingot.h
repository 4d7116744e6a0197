/* Ingot's C API: open an executable, look at its functions, call them. C11, usable from C++.
 *
 *     ingot_instance* instance = NULL;
 *     ingot_executable* executable = NULL;
 *     ingot_context* context = NULL;
 *     const ingot_function* function = NULL;
 *     ingot_open_options options = INGOT_OPEN_OPTIONS_INIT;
 *     options.trust = INGOT_TRUST_FILE;  // its kernels are native code: say that you trust them
 *
 *     status = ingot_instance_create(NULL, &instance);
 *     status = ingot_executable_open(instance, "model.ingot", &options, &executable);
 *     status = ingot_executable_find_function(executable, "main", &function);
 *     status = ingot_context_create(executable, NULL, &context);
 *     status = ingot_invoke_into(context, function, &input, 1, &output, 1);
 *
 * Rules
 *   - Functions that can fail return an ingot_status*: NULL is success; anything else is owned by the caller and
 *     released with ingot_status_release. `own` in a comment marks what the caller must release. Every _release accepts
 *     NULL. A NULL where an argument is needed is INGOT_INVALID_ARGUMENT; functions without a status accept it.
 *   - After a failure what is given by its address is NULL where it is a pointer (a handle, a function, a managed
 *     tensor), and as it was where it is a number, a value or another struct.
 *   - Returned strings and types are borrowed from the object that was asked and live as long as it does.
 *   - Options structs begin with struct_size; use the _INIT macros. Enums only grow.
 *   - An instance and an executable are immutable and may be shared by threads. A context belongs to one thread at a
 *     time; only ingot_context_cancel may be called from others. An executable keeps its instance alive, a context its
 *     executable, and a tensor that a call returned its memory: they may be released in any order.
 *   - The library installs no signal handlers, never exits, prints nothing unless a logger is given, and no exception
 *     leaves it. One of C++ that leaves an external function, an observer, the log or alloc ends the invocation, with
 *     INGOT_FAILED or, for std::bad_alloc, INGOT_OUT_OF_MEMORY; free, parallel_for and deleters must not throw. Running out of memory is a status, and the objects stay usable.
 *   - A mapped file must not be changed while the executable is open (truncating it means SIGBUS). */
#ifndef INGOT_INGOT_H_
#define INGOT_INGOT_H_

#include <stddef.h>
#include <stdint.h>

#include "runtime/dlpack_abi.h"

#if defined(_WIN32)
#define INGOT_API
#else
#define INGOT_API __attribute__((visibility("default")))
#endif
#define INGOT_WARN_UNUSED __attribute__((warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status */

typedef struct ingot_status ingot_status;

typedef enum ingot_status_code {
  INGOT_OK = 0,
  INGOT_INVALID_ARGUMENT = 1, /* the call breaks this header's contract */
  INGOT_NOT_FOUND = 2,        /* no such name; the message suggests the nearest */
  INGOT_BAD_INPUT = 3,        /* an input is malformed or does not fit the signature */
  INGOT_CORRUPT = 4,          /* the executable fails verification */
  INGOT_UNSUPPORTED_FILE = 5, /* it needs a version, feature or CPU that is not here */
  INGOT_NOT_TRUSTED = 6,      /* native code, and the open options do not say how it is trusted */
  INGOT_OUT_OF_MEMORY = 7,
  INGOT_DEADLINE_EXCEEDED = 8, /* or the fuel is used up */
  INGOT_UNSUPPORTED_MODEL = 9,
  INGOT_CANCELLED = 10,
  INGOT_FAILED = 11, /* a kernel, an assertion or an external function failed */
  INGOT_IO = 12
} ingot_status_code;

INGOT_API ingot_status_code ingot_status_get_code(const ingot_status* status); /* INGOT_OK for NULL */
INGOT_API const char* ingot_status_message(const ingot_status* status);        /* "" for NULL; UTF-8 */
/* The VM function, and in it the source operation or instruction, where the failure happened; "" outside of both. */
INGOT_API const char* ingot_status_function(const ingot_status* status);
INGOT_API const char* ingot_status_location(const ingot_status* status);
INGOT_API void ingot_status_release(ingot_status* status);

/* The version of the library: "0.1.0". */
INGOT_API const char* ingot_version(void);

/* ---- Instance: the allocator, the threads and the log that executables share. */

typedef struct ingot_instance ingot_instance;

typedef struct ingot_instance_options {
  size_t struct_size;
  int32_t num_threads; /* of the pool, the calling thread included; 0: one per processor; 1: no thread is started */
  /* Memory of tensors and arenas; both NULL: the default allocator. alloc returns `size` (> 0) bytes, aligned to
   * `alignment` (a power of two <= 4096), or NULL when there is no memory; free gets the size and alignment of the
   * allocation. Called from any thread. */
  void* (*alloc)(void* user, size_t size, size_t alignment);
  void (*free)(void* user, void* memory, size_t size, size_t alignment);
  /* Runs task(closure, i) for every i in [0, num_tasks), on up to num_threads threads, and waits for all; NULL: the
   * instance's own pool. Called from any thread. */
  void (*parallel_for)(void* user, void (*task)(void* closure, int64_t i), void* closure, int64_t num_tasks);
  void (*log)(void* user, const char* message); /* called from any thread; NULL: silent */
  void* user;                                   /* passed to all four */
} ingot_instance_options;
#define INGOT_INSTANCE_OPTIONS_INIT \
  { sizeof(ingot_instance_options), 0, NULL, NULL, NULL, NULL, NULL }

/* Creates an instance and starts its threads. options may be NULL. own: *instance. */
INGOT_API ingot_status* ingot_instance_create(const ingot_instance_options* options,
                                              ingot_instance** instance) INGOT_WARN_UNUSED;
INGOT_API void ingot_instance_release(ingot_instance* instance);

/* ---- Executable: a verified file. */

typedef struct ingot_executable ingot_executable;

/* How native kernels are trusted: they are machine code with the powers of the process. Where the machine has a policy
 * (/etc/ingot/policy, lines "require-signature KEY" and "allow-sha256 HASH"), one of its lines must hold as well,
 * unless kernels are stubs. */
typedef enum ingot_trust {
  INGOT_TRUST_NOTHING = 0, /* a file with native kernels is refused, unless kernels are stubs */
  INGOT_TRUST_FILE = 1,    /* the caller vouches for these bytes */
  INGOT_TRUST_SIGNED = 2,  /* signed by one of trusted_keys; the file is read to private memory and checked there */
  INGOT_TRUST_LISTED = 3   /* the SHA-256 of the whole file is one of allowed_sha256; read and checked likewise */
} ingot_trust;

typedef enum ingot_kernels {
  INGOT_KERNELS_NATIVE = 0,
  INGOT_KERNELS_STUB = 1 /* no native code: each kernel reads and writes exactly the declared extents; results are a
                            pattern without meaning */
} ingot_kernels;

typedef struct ingot_named_tensor {
  const char* name;
  ingot_dl_tensor tensor;
} ingot_named_tensor;

typedef struct ingot_open_options {
  size_t struct_size;
  ingot_trust trust;
  ingot_kernels kernels;
  int32_t verify_constants; /* non-zero: check the hashes of large constants, and of files of weights, too */
  /* The folder of the files of weights that the executable names (vm-compile --external-weights); NULL: the
   * executable's own folder, which bytes in memory do not have. */
  const char* weights_directory;
  /* Host tensors that replace the executable's weights of these names; they must have the same dtype and shape. Their
   * elements are borrowed until the executable, its contexts and its tensors are released. Only weights that vm-compile
   * was told to keep (--keep-prepare, --external-weights) can be replaced; another name is INGOT_BAD_INPUT. */
  const ingot_named_tensor* weights;
  size_t num_weights;
  const char* const* trusted_keys; /* for INGOT_TRUST_SIGNED: Ed25519 public keys, 64 hex digits each */
  size_t num_trusted_keys;
  const char* const* allowed_sha256; /* for INGOT_TRUST_LISTED: 64 hex digits each */
  size_t num_allowed_sha256;
} ingot_open_options;
#define INGOT_OPEN_OPTIONS_INIT \
  { sizeof(ingot_open_options), INGOT_TRUST_NOTHING, INGOT_KERNELS_NATIVE, 0, NULL, NULL, 0, NULL, 0, NULL, 0 }

/* Maps and verifies a file: an executable, or a program that one is packed into. options may be NULL. Fails with
 * INGOT_IO when it cannot be read, INGOT_CORRUPT when it fails verification, INGOT_UNSUPPORTED_FILE when it needs a
 * version, feature or CPU that is not here, INGOT_NOT_TRUSTED when its kernels are not trusted. own: *executable. */
INGOT_API ingot_status* ingot_executable_open(ingot_instance* instance, const char* path,
                                              const ingot_open_options* options,
                                              ingot_executable** executable) INGOT_WARN_UNUSED;
/* The same for bytes in memory, which must stay unchanged and alive until the executable, its contexts and its
 * tensors are released. Messages call them `name`, which may be NULL. own: *executable. */
INGOT_API ingot_status* ingot_executable_open_memory(ingot_instance* instance, const void* data, size_t size,
                                                     const char* name, const ingot_open_options* options,
                                                     ingot_executable** executable) INGOT_WARN_UNUSED;
INGOT_API void ingot_executable_release(ingot_executable* executable);

/* The names of the weights that can be replaced when the file is opened. An index out of range gives NULL. */
INGOT_API size_t ingot_executable_weight_count(const ingot_executable* executable);
INGOT_API const char* ingot_executable_weight_name(const ingot_executable* executable, size_t index);

/* Golden cases: calls with their expected results, which the file carries (vm-compile --golden). Everything in a case
 * is borrowed from the executable; inputs and outputs are host tensors by name. */
typedef struct ingot_golden_case {
  size_t struct_size;
  const char* function;
  const char* origin; /* of the outputs: "file" (the user's) or "reference" (evaluated without compiled kernels) */
  double relative_tolerance;
  double absolute_tolerance;
  const ingot_named_tensor* inputs;
  size_t num_inputs;
  const ingot_named_tensor* outputs;
  size_t num_outputs;
} ingot_golden_case;
#define INGOT_GOLDEN_CASE_INIT \
  { sizeof(ingot_golden_case), NULL, NULL, 0, 0, NULL, 0, NULL, 0 }
/* The cases are decoded at the first call; INGOT_CORRUPT when their section is malformed. */
INGOT_API ingot_status* ingot_executable_golden_case_count(const ingot_executable* executable,
                                                           size_t* count) INGOT_WARN_UNUSED;
/* Fills in *golden_case, which the caller has initialised by INGOT_GOLDEN_CASE_INIT. An index out of range is
 * INGOT_NOT_FOUND. */
INGOT_API ingot_status* ingot_executable_golden_case(const ingot_executable* executable, size_t index,
                                                     ingot_golden_case* golden_case) INGOT_WARN_UNUSED;

/* Metadata: key/value strings (producer, target, ...), ordered by key. An index out of range gives NULL. */
INGOT_API size_t ingot_executable_metadata_count(const ingot_executable* executable);
INGOT_API const char* ingot_executable_metadata_key(const ingot_executable* executable, size_t index);
INGOT_API const char* ingot_executable_metadata_value(const ingot_executable* executable, size_t index);

/* ---- Functions and their typed signatures. They are borrowed from the executable, and live as long as it or one of
 * its contexts. An index out of range gives NULL. */

typedef struct ingot_function ingot_function;
typedef struct ingot_type ingot_type;

INGOT_API size_t ingot_executable_function_count(const ingot_executable* executable); /* the exported ones */
INGOT_API const ingot_function* ingot_executable_function(const ingot_executable* executable, size_t index);
/* INGOT_NOT_FOUND, with the nearest name, when no exported function has this name. */
INGOT_API ingot_status* ingot_executable_find_function(const ingot_executable* executable, const char* name,
                                                       const ingot_function** function) INGOT_WARN_UNUSED;

INGOT_API const char* ingot_function_name(const ingot_function* function);
/* Such as "(image: float32[batch, 1, 8, 8]) -> (probabilities: float32[batch, 10])". */
INGOT_API const char* ingot_function_signature(const ingot_function* function);
/* Symbolic dimensions: returns the name, and sets min and max, which may be NULL, to the inclusive bounds. */
INGOT_API size_t ingot_function_symbol_count(const ingot_function* function);
INGOT_API const char* ingot_function_symbol(const ingot_function* function, size_t index, int64_t* min, int64_t* max);
INGOT_API size_t ingot_function_input_count(const ingot_function* function);
INGOT_API const char* ingot_function_input_name(const ingot_function* function, size_t index);
INGOT_API const ingot_type* ingot_function_input_type(const ingot_function* function, size_t index);
/* Non-zero when the function writes this tensor (tensor functions take their outputs as parameters). */
INGOT_API int32_t ingot_function_input_is_written(const ingot_function* function, size_t index);
INGOT_API size_t ingot_function_output_count(const ingot_function* function);
INGOT_API const char* ingot_function_output_name(const ingot_function* function, size_t index);
INGOT_API const ingot_type* ingot_function_output_type(const ingot_function* function, size_t index);

typedef enum ingot_kind {
  INGOT_KIND_INT = 0,   /* int64 */
  INGOT_KIND_FLOAT = 1, /* float64 */
  INGOT_KIND_BOOL = 2,
  INGOT_KIND_STRING = 3,
  INGOT_KIND_DTYPE = 4,
  INGOT_KIND_SHAPE = 5,
  INGOT_KIND_TENSOR = 6,
  INGOT_KIND_TUPLE = 7,
  INGOT_KIND_OPTIONAL = 8,
  INGOT_KIND_CLOSURE = 9,
  INGOT_KIND_OBJECT = 10
} ingot_kind;

INGOT_API ingot_kind ingot_type_kind(const ingot_type* type);
INGOT_API const char* ingot_type_text(const ingot_type* type);         /* such as "float32[batch, 10]" */
INGOT_API ingot_dl_data_type ingot_type_dtype(const ingot_type* type); /* of tensors */
INGOT_API int32_t ingot_type_rank(const ingot_type* type);             /* of tensors and shapes; else 0 */
/* The extent of an axis when it is a constant; -1 when it is symbolic or unknown, or there is no such axis. */
INGOT_API int64_t ingot_type_dim(const ingot_type* type, int32_t axis);
INGOT_API const char* ingot_type_dim_text(const ingot_type* type, int32_t axis); /* "batch", "8"; "?": unknown */
INGOT_API size_t ingot_type_element_count(const ingot_type* type);               /* of tuples */
INGOT_API const ingot_type* ingot_type_element(const ingot_type* type, size_t index);

/* ---- Values: plain data. Everything in an argument is borrowed for the call. Everything in a result (tensors,
 * strings, extents, elements) is owned by the caller: ingot_value_clear releases it. */

typedef struct ingot_value ingot_value;
struct ingot_value {
  ingot_kind kind;
  union {
    int64_t i;
    double f;
    int32_t b;
    const char* string;
    ingot_dl_data_type dtype;
    struct {
      const int64_t* extents;
      size_t rank;
    } shape;
    const ingot_dl_tensor* tensor;                   /* in an argument: any strides and byte_offset */
    ingot_dl_managed_tensor_versioned* owned_tensor; /* in a result: own */
    struct {
      ingot_value* elements;
      size_t count;
    } tuple;
  } as;
};
/* Releases what a result holds and makes it the int 0. Not for arguments, which own nothing. */
INGOT_API void ingot_value_clear(ingot_value* value);

/* ---- Tensors: handles for callers that pass results on, to other libraries too (DLPack). Handles and exported tensors
 * share reference-counted memory: none of these functions copies, and they may be released in any order. */

typedef struct ingot_tensor ingot_tensor;

/* Takes over a managed tensor: its deleter runs once, when the last user of its memory is released, or at once when the
 * function fails (INGOT_BAD_INPUT: its dtype, rank or DLPack version is not supported). own: *tensor. */
INGOT_API ingot_status* ingot_tensor_from_dlpack(ingot_dl_managed_tensor_versioned* managed,
                                                 ingot_tensor** tensor) INGOT_WARN_UNUSED;
INGOT_API ingot_status* ingot_tensor_from_legacy_dlpack(ingot_dl_managed_tensor* managed,
                                                        ingot_tensor** tensor) INGOT_WARN_UNUSED;
/* Exports the same memory in DLPack's versioned or older form. The older one cannot say read-only, so read-only tensors
 * are refused with INGOT_INVALID_ARGUMENT. own: *managed, by calling its deleter once. */
INGOT_API ingot_status* ingot_tensor_to_dlpack(const ingot_tensor* tensor,
                                               ingot_dl_managed_tensor_versioned** managed) INGOT_WARN_UNUSED;
INGOT_API ingot_status* ingot_tensor_to_legacy_dlpack(const ingot_tensor* tensor,
                                                      ingot_dl_managed_tensor** managed) INGOT_WARN_UNUSED;
/* The tensor's description, borrowed from the handle. */
INGOT_API const ingot_dl_tensor* ingot_tensor_view(const ingot_tensor* tensor);
INGOT_API void ingot_tensor_release(ingot_tensor* tensor);

/* ---- Context: the memory and states with which one thread at a time calls functions. Cheap to create. */

typedef struct ingot_context ingot_context;

/* A function that the executable names and the embedder provides. Arguments are borrowed for the call. On success the
 * function sets results[0..num_results): tensors in owned_tensor, which the VM takes over; everything else is copied
 * before the function is called again. It may not call into the same context. It returns NULL for success; for a
 * failure a status of ingot_status_create, which the VM takes over. */
typedef struct ingot_external {
  const char* name;
  ingot_status* (*call)(void* user, const ingot_value* arguments, size_t num_arguments, ingot_value* results,
                        size_t num_results);
  void* user;
  /* For calls from kernels, which pass addresses of buffers and integers only (T.call_packed); a result other than 0
   * fails the kernel. Called from any thread of the pool. May be NULL when no kernel calls the function, as `call` may
   * be when only kernels do. */
  int32_t (*call_raw)(void* user, void* const* buffers, const int64_t* ints);
} ingot_external;
/* Makes a status for an external function that fails. own: the result. */
INGOT_API ingot_status* ingot_status_create(ingot_status_code code, const char* message) INGOT_WARN_UNUSED;

typedef struct ingot_context_options {
  size_t struct_size;
  ingot_dl_device device;          /* that runs the kernels; all zero: what the file is for, a CPU where it has both */
  int64_t max_memory_bytes;        /* cap on what programs make this context allocate, per device; 0: no cap */
  int64_t fuel;                    /* calls and back edges per invocation; 0: no limit */
  const ingot_external* externals; /* copied */
  size_t num_externals;
  double deadline_seconds; /* for creating the context, then for each invocation; 0: none */
  /* 1: tensors that are elsewhere than the program has them are copied, arguments to their parameters' devices and
   * results to the host or to the caller's outputs. 0: such arguments and outputs are refused, and results of a program
   * for a GPU are on the GPU (type texts end with @ and the number of the device there). */
  int32_t copy_tensors;
} ingot_context_options;
#define INGOT_CONTEXT_OPTIONS_INIT \
  { sizeof(ingot_context_options), {0, 0}, 0, 0, NULL, 0, 0, 0 }

/* Creates a context, with states at their initial values. The first one of an executable packs the weights that the
 * file keeps raw. options may be NULL. INGOT_NOT_FOUND: an external function that the executable calls is not among
 * externals. own: *context. */
INGOT_API ingot_status* ingot_context_create(ingot_executable* executable, const ingot_context_options* options,
                                             ingot_context** context) INGOT_WARN_UNUSED;
INGOT_API void ingot_context_release(ingot_context* context);

/* Calls a function with arguments in the order of its inputs. Every argument is checked against the signature before
 * native code sees it: kind, dtype, rank, dims, device (INGOT_BAD_INPUT); a strided or under-aligned tensor is copied
 * to a compact one first. Tensors on a GPU are used there without a copy: work that writes them has to have ended or be
 * ordered before the GPU's (legacy) default stream, on which calls run, and results are complete when the call returns. On success results[0..num_results), in the order of its outputs, are set (own: see
 * ingot_value_clear); on failure they are untouched and the context stays usable. */
INGOT_API ingot_status* ingot_invoke(ingot_context* context, const ingot_function* function,
                                     const ingot_value* arguments, size_t num_arguments, ingot_value* results,
                                     size_t num_results) INGOT_WARN_UNUSED;
/* Calls a function whose inputs and outputs are all tensors, and writes the results into the caller's tensors. These
 * have the dtypes and dims of the results; one that is strided or not 64-byte aligned is copied to at the end. No
 * output may overlap another one or an input, except that it may be the tensor of an input that the function declares
 * to write in place. Warm calls allocate nothing. */
INGOT_API ingot_status* ingot_invoke_into(ingot_context* context, const ingot_function* function,
                                          const ingot_dl_tensor* const* inputs, size_t num_inputs,
                                          ingot_dl_tensor* const* outputs, size_t num_outputs) INGOT_WARN_UNUSED;

/* Calls with inputs that are set by name: ingot_context_set_input copies an input, ingot_context_run calls the
 * function, ingot_context_get_output fetches an output by number. Inputs stay set, as they were, for further runs until
 * an input of another function is set. An output that is a tensor of a tuple that was set is read-only. */
INGOT_API ingot_status* ingot_context_set_input(ingot_context* context, const ingot_function* function,
                                                const char* name, const ingot_dl_tensor* tensor) INGOT_WARN_UNUSED;
/* The same for an input of any kind that an argument may have: tensors, tuples, shapes, scalars, strings, dtypes. */
INGOT_API ingot_status* ingot_context_set_input_value(ingot_context* context, const ingot_function* function,
                                                      const char* name, const ingot_value* value) INGOT_WARN_UNUSED;
INGOT_API ingot_status* ingot_context_run(ingot_context* context, const ingot_function* function) INGOT_WARN_UNUSED;
/* An output of the last run. own: *output. */
INGOT_API ingot_status* ingot_context_get_output(ingot_context* context, size_t index,
                                                 ingot_value* output) INGOT_WARN_UNUSED;

/* Later invocations stop with INGOT_DEADLINE_EXCEEDED once they have run for `seconds` (>= 0); 0: no deadline. They
 * stop where ingot_context_cancel stops them. */
INGOT_API ingot_status* ingot_context_set_deadline(ingot_context* context, double seconds) INGOT_WARN_UNUSED;
/* Stops the running invocation with INGOT_CANCELLED, at its next call or back edge, or inside of a builtin. May be
 * called from any thread and from a signal handler. */
INGOT_API void ingot_context_cancel(ingot_context* context);

/* ---- States: tensors that a context keeps between invocations, such as a key/value cache. The functions of the
 * executable read and write them; each context begins with their initial values. A failed invocation leaves the states
 * of caches as they were. While the context runs, these calls fail with INGOT_INVALID_ARGUMENT. */

INGOT_API size_t ingot_executable_state_count(const ingot_executable* executable);
INGOT_API const char* ingot_executable_state_name(const ingot_executable* executable, size_t index);
/* Copies a state to the host; of a cache, the filled part. INGOT_NOT_FOUND: no state has this name. own: *tensor. */
INGOT_API ingot_status* ingot_context_get_state(const ingot_context* context, const char* name,
                                                ingot_dl_managed_tensor_versioned** tensor) INGOT_WARN_UNUSED;
/* Copies a host tensor of the state's dtype and dims into it (else INGOT_BAD_INPUT). The dims of a cache follow from
 * its length, which is a state of its own and is set first. */
INGOT_API ingot_status* ingot_context_set_state(ingot_context* context, const char* name,
                                                const ingot_dl_tensor* tensor) INGOT_WARN_UNUSED;
/* Sets all states at once, given in any order, such as copies from this or another context of the executable. When one
 * is missing, unknown or does not fit, nothing is changed. */
INGOT_API ingot_status* ingot_context_set_states(ingot_context* context, const char* const* names,
                                                 const ingot_dl_tensor* const* tensors, size_t count) INGOT_WARN_UNUSED;
/* Resets all states to their initial values; caches become empty. */
INGOT_API ingot_status* ingot_context_reset_states(ingot_context* context) INGOT_WARN_UNUSED;

/* Bytes of arenas and tensors that the context holds now, and the most that it ever held; on a GPU that it runs on, those
 * of constants and workspaces there too. */
INGOT_API int64_t ingot_context_memory_in_use(const ingot_context* context);
INGOT_API int64_t ingot_context_memory_peak(const ingot_context* context);

/* ---- Asynchronous invocations: each runs on a thread of its own, which ends with it. */

typedef struct ingot_task ingot_task;

/* Starts ingot_invoke, or ingot_invoke_into, and returns. Arguments are read before it returns, except for the elements
 * of tensors, which are borrowed until the task is done. The context belongs to the task, and other calls with it fail
 * with INGOT_INVALID_ARGUMENT, until ingot_task_wait has returned the outcome or the task is released. own: *task. */
INGOT_API ingot_status* ingot_invoke_async(ingot_context* context, const ingot_function* function,
                                           const ingot_value* arguments, size_t num_arguments,
                                           ingot_task** task) INGOT_WARN_UNUSED;
INGOT_API ingot_status* ingot_invoke_into_async(ingot_context* context, const ingot_function* function,
                                                const ingot_dl_tensor* const* inputs, size_t num_inputs,
                                                ingot_dl_tensor* const* outputs, size_t num_outputs,
                                                ingot_task** task) INGOT_WARN_UNUSED;
/* Non-zero when the invocation has ended, with success or a failure. May be called from any thread. */
INGOT_API int32_t ingot_task_is_done(const ingot_task* task);
/* Waits at most `seconds` for the end of the invocation (a negative number: without limit), and returns what
 * ingot_task_is_done would. May be called from any thread. */
INGOT_API int32_t ingot_task_wait_for(const ingot_task* task, double seconds);
/* Stops the invocation as ingot_context_cancel does, also when its thread has not begun it yet. May be called from any
 * thread and from a signal handler. */
INGOT_API void ingot_task_cancel(ingot_task* task);
/* Waits for the end, gives the context back, and returns what ingot_invoke would have returned; it can be called once.
 * The results of ingot_invoke_async are moved to results (own); for ingot_invoke_into_async num_results is 0. To be
 * called on the thread that the context belongs to. */
INGOT_API ingot_status* ingot_task_wait(ingot_task* task, ingot_value* results, size_t num_results) INGOT_WARN_UNUSED;
/* Cancels the invocation if it still runs, waits for its end, and gives the context back. To be called before the
 * context is released. In an external function of the invocation itself it cancels alone: release the task again. */
INGOT_API void ingot_task_release(ingot_task* task);

/* ---- Observation: what an invocation does, instruction by instruction. Observers are set between invocations, stay
 * until they are replaced (NULL: none), and are called on the thread of the invocation; of the calls with this context
 * they may make ingot_context_cancel only. Without observers, observation costs nothing. */

typedef enum ingot_event_kind {
  INGOT_EVENT_KERNEL = 0,
  INGOT_EVENT_BUILTIN = 1,  /* a host routine of the VM */
  INGOT_EVENT_EXTERNAL = 2, /* a function of the embedder */
  INGOT_EVENT_OTHER = 3     /* allocations, copies, views, arithmetic on dimensions, ... */
} ingot_event_kind;

/* One instruction. Strings are borrowed from the executable. */
typedef struct ingot_event {
  size_t struct_size;
  ingot_event_kind kind;
  const char* name;      /* of the kernel, builtin or external function; else the opcode */
  const char* function;  /* the VM function */
  int64_t instruction;   /* its index there */
  const char* operation; /* of the source; "" when it is not known */
  int64_t begin_ns;      /* nanoseconds of a steady clock; 0 before it has run */
  int64_t end_ns;
  int64_t flops; /* of a kernel, as the compiler estimates; 0: not known */
  int64_t bytes; /* read and written: for a kernel an estimate, else the size of its tensors; 0: not known */
} ingot_event;

/* Sets the profiler, which is called after each instruction except jumps, returns and calls of the executable's
 * functions. */
INGOT_API ingot_status* ingot_context_set_profiler(ingot_context* context,
                                                   void (*profiler)(void* user, const ingot_event* event),
                                                   void* user) INGOT_WARN_UNUSED;

typedef enum ingot_role { INGOT_ROLE_IN = 0, INGOT_ROLE_OUT = 1, INGOT_ROLE_INOUT = 2 } ingot_role;
typedef struct ingot_event_argument {
  const char* name; /* of the parameter */
  ingot_role role;
  ingot_dl_tensor tensor; /* compact; borrowed for the call; an instrument may write it */
} ingot_event_argument;

typedef enum ingot_phase { INGOT_BEFORE = 0, INGOT_AFTER = 1 } ingot_phase;
/* INGOT_SKIP, returned before: the routine does not run and its outputs keep the bytes that were there; for external
 * functions with results the invocation fails instead. INGOT_STOP: the invocation ends with INGOT_CANCELLED. */
typedef enum ingot_decision { INGOT_RUN = 0, INGOT_SKIP = 1, INGOT_STOP = 2 } ingot_decision;
typedef ingot_decision (*ingot_instrument)(void* user, ingot_phase phase, const ingot_event* event,
                                           const ingot_event_argument* arguments, size_t num_arguments);
/* Sets the instrument, which is called before and after each kernel, builtin and external function with its tensors
 * (for an external function: its arguments before, its results after). After, only INGOT_STOP has an effect. */
INGOT_API ingot_status* ingot_context_set_instrument(ingot_context* context, ingot_instrument instrument,
                                                     void* user) INGOT_WARN_UNUSED;

/* While it is on (non-zero), invocations fail with INGOT_FAILED at the first kernel, builtin or external function that
 * makes a NaN out of tensors without one, or an infinity out of finite ones, and name it; a NaN in an argument is
 * INGOT_BAD_INPUT. */
INGOT_API ingot_status* ingot_context_set_check_finite(ingot_context* context, int32_t on) INGOT_WARN_UNUSED;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
