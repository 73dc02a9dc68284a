//! Times a step on a GPU, in turns with a copy of the same number of bytes and, if you name a
//! cubin, with `cuda/gray_scott.cu`. Fails if the bits differ.
//!
//! ```text
//! nvcc -arch=sm_90 -O3 -fmad=false -cubin -o gray_scott.cubin cuda/gray_scott.cu
//! cargo run --release --features gpu --bin speed -- 4096 gray_scott.cubin
//! ```

use std::error::Error;
use std::time::Instant;

use cust::context::CurrentContext;
use cust::function::GridSize;
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use own_kernel_kernels::Reaction;

/// Steps per turn: even, so that the fields end in the buffers where they began.
const STEPS: usize = 100;
const TURNS: usize = 21;

/// A [`Reaction`] as a parameter of a kernel that cust launches.
#[derive(Clone, Copy)]
#[repr(C)]
struct Parameter(Reaction);

// SAFETY: four numbers, no pointers.
unsafe impl cust::memory::DeviceCopy for Parameter {}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let n: usize = arguments.next().map_or(Ok(4096), |n| n.parse())?;
    if n == 0 || !n.is_multiple_of(4) {
        return Err(format!("{n} points a row: they must be a multiple of 4").into());
    }
    let device = own_kernel::device()?;
    if device.kind() != halo_gpu::DeviceKind::Cuda {
        return Err("there is no GPU to measure".into());
    }
    // The device's primary context, which the library's device uses too.
    let _context = cust::quick_init()?;
    let reaction = Reaction {
        diffusion_u: 0.16,
        diffusion_v: 0.08,
        feed: 0.06,
        kill: 0.05,
    };
    let wave = |n: usize, by: f32| 0.5 + 0.4 * (n as f32 * by).sin();
    let [u, v] = [0.7, 1.3].map(|by| (0..n * n).map(|at| wave(at, by)).collect::<Vec<f32>>());

    let mut dish = own_kernel::dish(&device, reaction, n, &u, &v)?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let mut fields = [&u, &v, &u, &v]
        .map(|field| DeviceBuffer::from_slice(field))
        .into_iter();
    let mut next = || fields.next().expect("there are four");
    let mut now = [next()?, next()?];
    let mut new = [next()?, next()?];

    let mut ways = vec!["a copy of as many bytes", "this crate's kernel"];
    let cubin = arguments.next().map(std::fs::read).transpose()?;
    let module = cubin
        .map(|cubin| Module::from_cubin(cubin, &[]))
        .transpose()?;
    if module.is_some() {
        ways.extend(["CUDA C++, marching", "CUDA C++, row by row"]);
    }
    let mut times = vec![Vec::new(); ways.len()];
    for turn in 0..=TURNS {
        for (way, times) in times.iter_mut().enumerate() {
            if way > 1 {
                for (field, values) in now.iter_mut().zip([&u, &v]) {
                    field.copy_from(values)?;
                }
            }
            let start = Instant::now();
            match (way, &module) {
                (0, _) => {
                    for _ in 0..STEPS {
                        for (now, new) in now.iter().zip(&mut new) {
                            new.copy_from(now)?;
                        }
                    }
                    CurrentContext::synchronize()?;
                }
                (_, Some(module)) if way > 1 => {
                    step_in_cpp(module, way, n, reaction, &mut now, &mut new, &stream)?;
                }
                _ => {
                    dish.steps(STEPS)?;
                    device.synchronize()?;
                }
            }
            times.push(start.elapsed().as_secs_f64() / STEPS as f64);
        }
        if turn == 0 {
            // The first turn warms up and compares the results.
            times.iter_mut().for_each(Vec::clear);
            if module.is_some() {
                compare([dish.to_vec(0)?, dish.to_vec(1)?], &now)?;
            }
        }
    }
    let bytes = (4 * n * n * size_of::<f32>()) as f64;
    println!(
        "{n} × {n} points in f32 on {}, medians of {TURNS} turns",
        device.name()
    );
    let medians: Vec<f64> = times
        .iter_mut()
        .map(|times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        })
        .collect();
    for (way, median) in ways.iter().zip(&medians) {
        println!(
            "{way:>24}: {:8.1} µs a step, {:6.0} GB/s, {:.3} of the copy",
            1e6 * median,
            1e-9 * bytes / median,
            medians[0] / median
        );
    }
    Ok(())
}

/// The same steps by the kernels of `cuda/gray_scott.cu`.
fn step_in_cpp(
    module: &Module,
    way: usize,
    n: usize,
    reaction: Reaction,
    now: &mut [DeviceBuffer<f32>; 2],
    new: &mut [DeviceBuffer<f32>; 2],
    stream: &Stream,
) -> Result<(), Box<dyn Error>> {
    let points = n as u32;
    // Rows that a thread marches through: the fastest of 4, 8 and 16.
    let segment = 4_u32;
    let (kernel, grid, block): (_, GridSize, _) = if way == 2 {
        let grid = (points.div_ceil(1024), points.div_ceil(segment));
        (module.get_function("march")?, grid.into(), (256, 1))
    } else {
        let grid = (points.div_ceil(256), points.div_ceil(4));
        (module.get_function("rows")?, grid.into(), (64, 4))
    };
    for _ in 0..STEPS {
        let [u, v] = now.each_ref().map(|field| field.as_device_ptr());
        let [new_u, new_v] = new.each_ref().map(|field| field.as_device_ptr());
        // SAFETY: the kernels read and write n × n points of four fields of that length, and the
        // stream is synchronised before anything else uses the fields.
        unsafe {
            cust::launch!(kernel<<<grid, block, 0, stream>>>(
                u, v, new_u, new_v, points, points, segment, Parameter(reaction)
            ))?;
        }
        std::mem::swap(now, new);
    }
    stream.synchronize()?;
    Ok(())
}

/// Fails if the fields differ in a bit.
fn compare(own: [Vec<f32>; 2], theirs: &[DeviceBuffer<f32>; 2]) -> Result<(), Box<dyn Error>> {
    for (own, theirs) in own.iter().zip(theirs) {
        let theirs = theirs.as_host_vec()?;
        let differing = own
            .iter()
            .zip(&theirs)
            .filter(|(a, b)| a.to_bits() != b.to_bits());
        match differing.count() {
            0 => {}
            count => return Err(format!("{count} points differ from CUDA C++'s").into()),
        }
    }
    println!("{STEPS} steps have the bits of CUDA C++'s");
    Ok(())
}
