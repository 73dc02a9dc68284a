//! Compares the kernel with the formula, at sizes around the size of a block.

use cuda_emulator::{DeviceMemory, Diagnosis, LaunchConfig, Verify, verify};
use cuda_std::host::{In, Kernel as _, Out};
use template_name_kernels::{BLOCK, smooth};

const SIZES: [usize; 6] = [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 1000];

fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i as f32 * 0.7).sin()).collect()
}

/// The result of `smooth` in the emulator, in several orders of threads, for `x` and an output of
/// this length.
fn emulated(x: &[f32], out_len: usize) -> Result<Vec<f32>, Diagnosis> {
    let memory = DeviceMemory::new();
    let bytes: Vec<u8> = x.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let mut input = memory.alloc(bytes.len(), 4, "x").unwrap();
    input.copy_from_bytes(0, &bytes);
    let out = memory.alloc(4 * out_len, 4, "out").unwrap();

    // SAFETY: these are the addresses of buffers of these lengths, which only this launch uses.
    let args = unsafe {
        smooth::args(
            In::from_raw(input.addr(), x.len()),
            Out::from_raw(out.addr(), out_len),
        )
    };
    let config = LaunchConfig {
        kernel: smooth::NAME,
        grid: [x.len().div_ceil(BLOCK) as u32, 1, 1],
        block: [BLOCK as u32, 1, 1],
        dynamic_shared_bytes: 0,
    };
    // SAFETY: the kernel's contract holds but for the length of `out`, which the emulator checks.
    let thread = || unsafe { smooth::run_thread(&args) };
    // SAFETY: threads own plain values only, and nothing else uses the memory.
    unsafe { verify(&config, &Verify::default(), &memory, &thread)? };

    let mut bytes = vec![0; 4 * out_len];
    out.copy_to_bytes(0, &mut bytes);
    Ok(bytes
        .chunks_exact(4)
        .map(|four| f32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
        .collect())
}

#[test]
fn the_emulator_computes_the_formula() {
    for len in SIZES {
        let x = numbers(len);
        assert_eq!(emulated(&x, len).unwrap(), template_name::smooth_on_cpu(&x));
    }
}

#[test]
fn a_write_past_the_end_is_found() {
    let said = emulated(&numbers(200), 199).unwrap_err().to_string();
    assert!(said.contains("`out`") && said.contains("199"), "{said}");
}

#[cfg(feature = "gpu")]
#[test]
fn the_gpu_computes_the_formula() {
    for len in SIZES {
        let x = numbers(len);
        let found = template_name::smooth(&x).expect("the feature `gpu` needs one");
        assert_eq!(found, template_name::smooth_on_cpu(&x));
    }
}
