/* Ingot's C API to compile: a model file in, an executable out, in memory or as a file. C11, usable from C++. It is a
 * library of its own (libingot-compiler), which needs LLVM; the executables run with ingot.h alone. Statuses are
 * ingot.h's.
 *
 *     ingot_compile_options options = INGOT_COMPILE_OPTIONS_INIT;
 *     ingot_compiled* compiled = NULL;
 *     status = ingot_compile("model.onnx", &options, &compiled);
 *     status = ingot_compiled_write(compiled, INGOT_FORM_PROGRAM, "model");
 *
 * If memory runs out, the process ends (LLVM cannot do otherwise). Calls may come from several threads. Functions of the
 * caller must not throw. */
#ifndef INGOT_COMPILER_H_
#define INGOT_COMPILER_H_

#include "ingot/ingot.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ingot_compiled ingot_compiled;

typedef struct ingot_compile_options {
  size_t struct_size;
  const char* target;              /* as --target: "cpu", "cpu:native", "cpu:x86-64-v3"; NULL: "cpu" */
  int32_t opt_level;               /* 0 to 3 */
  int32_t num_threads;             /* 0: all processors; the result is the same */
  const char* const* input_shapes; /* as --input-shape: "image=batch,3,224,224" */
  size_t num_input_shapes;
  const char* const* dims; /* as --dim: "batch=1..64" */
  size_t num_dims;
  const char* params_path; /* tensors for parameters of a module, or inputs of a model, by name; NULL: none */
  const char* labels;      /* names of classes, a line each, to keep in the executable; NULL: none */
  int32_t keep_prepare;    /* non-zero: weights are packed when the executable is loaded */
  /* NULL: silent. */
  void (*log)(void* user, const char* message);
  void (*progress)(void* user, const char* step, int64_t done, int64_t total);
  void* user;
  const char* softmax_output; /* a result of "main" that becomes probabilities; NULL: none */
  const char* const* states;  /* as --state: "past_k=present_k" */
  size_t num_states;
  const char* fast_math; /* as --fast-math: "all", or groups of rewrites: "reassociate,overflow"; NULL: none */
  int32_t strict_math;   /* non-zero: as --strict-math, which fast_math excludes */
  /* A folder of compiled kernels, as --cache; "": the user's own, where --cache has its default; NULL: none, since a
   * library writes into nobody's home unless it is told to. The executable is the same. */
  const char* cache;
  int64_t cache_max_bytes; /* the folder's bound; 0: 512 MiB */
  const char* tuning_db;   /* records of tuned schedules, as --tuning-db; NULL: none */
} ingot_compile_options;
#define INGOT_COMPILE_OPTIONS_INIT                                                                                     \
  {                                                                                                                    \
    sizeof(ingot_compile_options), NULL, 2, 0, NULL, 0, NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL, \
        0, NULL, 0, NULL                                                                                               \
  }

/* Compiles a model (.onnx) or a module (.py, TVMScript). options may be NULL. The caller owns *compiled and releases it
 * with ingot_compiled_release. */
INGOT_API ingot_status* ingot_compile(const char* model_path, const ingot_compile_options* options,
                                      ingot_compiled** compiled) INGOT_WARN_UNUSED;

/* The executable's bytes and their number, for ingot_executable_open_memory; borrowed from `compiled`. */
INGOT_API const void* ingot_compiled_data(const ingot_compiled* compiled);
INGOT_API size_t ingot_compiled_size(const ingot_compiled* compiled);

typedef enum ingot_form {
  INGOT_FORM_EXECUTABLE = 0, /* a file for ingot_executable_open */
  INGOT_FORM_PROGRAM = 1,    /* a native program */
  INGOT_FORM_OBJECT = 2,     /* an ELF object, and a C header beside it */
  INGOT_FORM_SHARED = 3      /* an ELF shared library, and a C header beside it */
} ingot_form;
/* Writes the file whole or not at all. */
INGOT_API ingot_status* ingot_compiled_write(const ingot_compiled* compiled, ingot_form form,
                                             const char* path) INGOT_WARN_UNUSED;

typedef struct ingot_write_options {
  size_t struct_size;
  const char* compress;            /* as --compress: "none", "zstd:3"; NULL: "none" */
  const char* secret_key;          /* a file of a key to sign with (vm-inspect --make-key); NULL: not signed */
  const char* const* golden_cases; /* tensor files of calls to keep for the self-test, as --golden */
  size_t num_golden_cases;
  double golden_relative_tolerance;
  double golden_absolute_tolerance;
  const char* external_weights; /* as --external-weights, which needs keep_prepare; NULL: the weights stay inside */
  const char* launcher;         /* for programs: the launcher's path; NULL: the one that belongs to this library */
} ingot_write_options;
#define INGOT_WRITE_OPTIONS_INIT \
  { sizeof(ingot_write_options), NULL, NULL, NULL, 0, 1e-4, 1e-5, NULL, NULL }
/* Like ingot_compiled_write, with options, which may be NULL. */
INGOT_API ingot_status* ingot_compiled_write_with(const ingot_compiled* compiled, ingot_form form, const char* path,
                                                  const ingot_write_options* options) INGOT_WARN_UNUSED;
INGOT_API void ingot_compiled_release(ingot_compiled* compiled);

/* ---- Tuning: looks, by measuring, for choices of the whole file (blocked layouts, Winograd's convolutions, packed
 * weights) and for schedules of a model's kernels that are faster than the default ones. What it finds stands in a file of records, which ingot_compile takes as tuning_db. */
typedef struct ingot_tuning ingot_tuning;

typedef struct ingot_tune_options {
  size_t struct_size;
  const char* database;       /* the file of records, to which new ones are appended; one process at a time */
  int64_t trials;             /* schedules that are measured at most, default ones not counted */
  int64_t trials_per_task;    /* the same of each task, earlier records counted */
  int64_t early_stop;         /* a task ends after so many trials without a faster one */
  double seconds;             /* no further trial after so long; comparisons come on top; 0: no bound */
  const char* search;         /* "evolution", "random" or "grid" */
  int32_t learn;              /* non-zero: evolution asks XGBoost, where libxgboost is installed (log says if not) */
  uint64_t seed;              /* of what is drawn at random */
  const char* const* runners; /* commands that run {program}: "ssh board {program}"; none: this machine */
  size_t num_runners;
  const char* worker;   /* the program that runners run; NULL: the one that belongs to this library */
  int32_t num_threads;  /* of a kernel that is measured */
  double trial_seconds; /* a schedule that takes longer is given up */
  int32_t hot;          /* non-zero: tensors stay in the caches between calls */
  /* Asked before each step; non-zero ends the run: what is measured is finished, nothing more is compared. NULL: no. */
  int32_t (*should_stop)(void* user);
  void* user; /* should_stop's */
  /* Sizes of symbolic dimensions, as --sizes: "batch=32", "batch=1,steps=128:0.5". Kernels that depend on symbols are
   * measured with each, and their times are means by weight; with none they are not tuned. */
  const char* const* sizes;
  size_t num_sizes;
  /* "graph": choices of the file alone, also for several CPUs, which are judged on each; "schedules": those of kernels
   * alone; NULL: both. */
  const char* only;
} ingot_tune_options;
#define INGOT_TUNE_OPTIONS_INIT                                                                                        \
  {                                                                                                                    \
    sizeof(ingot_tune_options), NULL, 64, 256, 64, 0, "evolution", 1, 1, NULL, 0, NULL, 1, 10, 0, NULL, NULL, NULL, 0, \
        NULL                                                                                                           \
  }

/* Tunes a model for the one CPU that options->target names (NULL: "cpu:native"). options may be NULL; its log and
 * progress are called. With tune NULL, tasks are listed and nothing is measured. The caller owns *tuning and releases it
 * with ingot_tuning_release. */
INGOT_API ingot_status* ingot_tuning_run(const char* model_path, const ingot_compile_options* options,
                                         const ingot_tune_options* tune, ingot_tuning** tuning) INGOT_WARN_UNUSED;

/* Two programs that were measured in turns: the median of the ratios of their times, and its 95% interval. */
typedef struct ingot_ratio {
  double median, lower, upper; /* of the tuned one's time by the default's; 0: there is no comparison */
  int32_t is_faster;           /* non-zero: the interval lies below 0.98 */
} ingot_ratio;

/* A kernel of the model, whatever functions it stands for. Texts are borrowed from the ingot_tuning. */
typedef struct ingot_tuned_task {
  size_t struct_size;
  const char* key;    /* as in records */
  const char* kernel; /* the first of its functions */
  const char* note;   /* why it was not tuned; "": it was, or tasks were only listed */
  int64_t weight;     /* calls of a run of the model */
  double flops, bytes;
  double roofline_seconds, predicted_seconds;
  double num_schedules; /* the size of the space; 1: its rules choose nothing */
  int32_t is_symbolic;
  int64_t trials, new_trials, failed;   /* those of earlier runs too, of this run, those of them that failed */
  double default_seconds, best_seconds; /* the fastest repeats in the search; 0: not measured */
  ingot_ratio comparison;               /* the last one of its fastest schedule with the default */
} ingot_tuned_task;
#define INGOT_TUNED_TASK_INIT                                                                      \
  {                                                                                                \
    sizeof(ingot_tuned_task), NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0, 0 } \
  }

INGOT_API size_t ingot_tuning_task_count(const ingot_tuning* tuning);
/* index < task count; task->struct_size is set. */
INGOT_API ingot_status* ingot_tuning_task(const ingot_tuning* tuning, size_t index,
                                          ingot_tuned_task* task) INGOT_WARN_UNUSED;
/* The choices of the file that ingot_compile takes, as "layout=0, pack_weights=0"; "": the usual ones. And the model
 * with the fastest of all that were tried and with the usual ones, on the first CPU. */
INGOT_API const char* ingot_tuning_choices(const ingot_tuning* tuning);
INGOT_API ingot_ratio ingot_tuning_graph(const ingot_tuning* tuning);
/* The whole model with all schedules that were found and without any; is_faster: ingot_compile takes them. */
INGOT_API ingot_ratio ingot_tuning_model(const ingot_tuning* tuning);
INGOT_API const char* ingot_tuning_note(const ingot_tuning* tuning); /* why the model was not compared; "": it was */
INGOT_API void ingot_tuning_release(ingot_tuning* tuning);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
