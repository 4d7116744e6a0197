// run_digits.c in Rust, by plain FFI: no crates, the declarations that are used and nothing more.
//
//   rustc run_digits.rs -L <prefix>/lib && ./run_digits digits.ingot
use std::ffi::{c_void, CStr, CString};
use std::os::raw::c_char;
use std::ptr::{null, null_mut};

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    device_type: i32,
    device_id: i32,
}
#[repr(C)]
#[derive(Clone, Copy)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}
#[repr(C)]
struct ManagedTensor {
    version: [u32; 2],
    manager_ctx: *mut c_void,
    deleter: Option<extern "C" fn(*mut ManagedTensor)>,
    flags: u64,
    tensor: Tensor,
}
#[repr(C)]
#[derive(Clone, Copy)]
union Payload {
    tensor: *const Tensor,
    owned_tensor: *const ManagedTensor,
    words: [u64; 2],
}
#[repr(C)]
struct Value {
    kind: i32,
    payload: Payload,
}
#[repr(C)]
struct OpenOptions {
    struct_size: usize,
    trust: i32,
    kernels: i32,
    verify_constants: i32,
}
const KIND_TENSOR: i32 = 6;
const TRUST_FILE: i32 = 1;
const CPU: i32 = 1;

#[link(name = "ingot")]
extern "C" {
    fn ingot_status_message(status: *const c_void) -> *const c_char;
    fn ingot_status_release(status: *mut c_void);
    fn ingot_instance_create(options: *const c_void, instance: *mut *mut c_void) -> *mut c_void;
    fn ingot_instance_release(instance: *mut c_void);
    fn ingot_executable_open(
        instance: *mut c_void,
        path: *const c_char,
        options: *const OpenOptions,
        executable: *mut *mut c_void,
    ) -> *mut c_void;
    fn ingot_executable_release(executable: *mut c_void);
    fn ingot_executable_find_function(
        executable: *const c_void,
        name: *const c_char,
        function: *mut *const c_void,
    ) -> *mut c_void;
    fn ingot_context_create(
        executable: *mut c_void,
        options: *const c_void,
        context: *mut *mut c_void,
    ) -> *mut c_void;
    fn ingot_context_release(context: *mut c_void);
    fn ingot_invoke(
        context: *mut c_void,
        function: *const c_void,
        arguments: *const Value,
        num_arguments: usize,
        results: *mut Value,
        num_results: usize,
    ) -> *mut c_void;
    fn ingot_value_clear(value: *mut Value);
}

fn check(status: *mut c_void) {
    if status.is_null() {
        return;
    }
    unsafe {
        eprintln!(
            "run_digits: {}",
            CStr::from_ptr(ingot_status_message(status)).to_string_lossy()
        );
        ingot_status_release(status);
    }
    std::process::exit(1);
}

/// A 7 of 8 x 8 pixels, 0 to 16.
const IMAGE: [f32; 64] = [
    0., 0., 9., 14., 16., 16., 6., 0., 0., 0., 6., 8., 8., 16., 8., 0., 0., 0., 0., 0., 6., 15., 2., 0., 0.,
    0., 4., 12., 16., 9., 0., 0., 0., 0., 9., 16., 12., 4., 0., 0., 0., 0., 2., 14., 4., 0., 0., 0., 0., 0.,
    9., 12., 0., 0., 0., 0., 0., 0., 13., 7., 0., 0., 0., 0.,
];

fn main() {
    let path = match std::env::args().nth(1) {
        Some(path) => CString::new(path).unwrap(),
        None => {
            eprintln!("usage: run_digits FILE.ingot");
            std::process::exit(2);
        }
    };
    let name = CString::new("main").unwrap();
    let (mut instance, mut executable, mut context) = (null_mut(), null_mut(), null_mut());
    let mut function = null();
    let options = OpenOptions {
        struct_size: std::mem::size_of::<OpenOptions>(),
        trust: TRUST_FILE,
        kernels: 0,
        verify_constants: 0,
    };
    let image = IMAGE;
    let shape = [1i64, 1, 8, 8];
    let input = Tensor {
        data: image.as_ptr() as *mut c_void,
        device: Device {
            device_type: CPU,
            device_id: 0,
        },
        ndim: 4,
        dtype: DataType {
            code: 2,
            bits: 32,
            lanes: 1,
        },
        shape: shape.as_ptr(),
        strides: null(),
        byte_offset: 0,
    };
    let argument = Value {
        kind: KIND_TENSOR,
        payload: Payload { tensor: &input },
    };
    let mut result = Value {
        kind: 0,
        payload: Payload { words: [0, 0] },
    };
    unsafe {
        check(ingot_instance_create(null(), &mut instance));
        check(ingot_executable_open(
            instance,
            path.as_ptr(),
            &options,
            &mut executable,
        ));
        check(ingot_executable_find_function(
            executable,
            name.as_ptr(),
            &mut function,
        ));
        check(ingot_context_create(executable, null(), &mut context));
        check(ingot_invoke(context, function, &argument, 1, &mut result, 1));
        let scores = std::slice::from_raw_parts((*result.payload.owned_tensor).tensor.data as *const f32, 10);
        let best = (0..scores.len())
            .max_by(|&a, &b| scores[a].total_cmp(&scores[b]))
            .unwrap();
        println!("this is a {best}");
        ingot_value_clear(&mut result);
        ingot_context_release(context);
        ingot_executable_release(executable);
        ingot_instance_release(instance);
    }
}
