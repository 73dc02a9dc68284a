//! What the CPU device computes where it has fewer threads, or less memory, than usual.
//!
//! Each test runs again in a process of its own, which is changed as a whole.

#![cfg(target_os = "linux")]

mod child;

use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::heat2d::Heat2d;
use halo_gpu::nbody::problem::potential_energy;
use halo_gpu::nbody::{Body, Gravity};
use halo_gpu::stencil1d::Stencil1d;
use halo_gpu::{Axis, Device, Error, Field2, Field3, Grid3, Shape2, Shape3, reduction, test_cases};
use std::process::Command;
use std::time::{Duration, Instant};

/// Bits of what every family computes on the CPU, of sizes at which it uses all threads.
fn everything() -> Result<Vec<u64>, Error> {
    let device = Device::cpu();
    let mut bits = Vec::new();

    let values: Vec<f64> = (0..1 << 20).map(|i| f64::from(i % 1009) - 500.0).collect();
    let buffer = device.upload(&values)?;
    bits.push(reduction::sum(&buffer)?.to_bits());
    bits.push(reduction::dot(&buffer, &buffer)?.to_bits());
    bits.push(reduction::max(&buffer)?.to_bits());

    let shape = Shape3::new(64, 64, 64);
    let field = Field3::from_fn(shape, |i, j, k| ((i * 7 + j * 5 + k * 3) % 31) as f32)?;
    let grid = Grid3::new(shape, [1.0; 3])?.of_unit_length()?;
    let differences = FiniteDifferences3d::new(&grid)?;
    for axis in Axis::ALL {
        let of = differences.derivative_of(&device, axis, &field)?;
        bits.extend(of.into_vec().iter().map(|value| u64::from(value.to_bits())));
    }

    let plate = Shape2::new(512, 512);
    let plate_field = Field2::from_fn(plate, |i, j| f64::from(u32::from(i == 0 || j == 3)))?;
    let solved = Heat2d::dirichlet(plate)?.iterate_of(&device, &plate_field, 3)?;
    bits.extend(solved.into_vec().iter().map(|value| value.to_bits()));

    let line = Stencil1d::antisymmetric(1 << 20, &[0.5, 0.25, -0.125, 0.0625])?;
    let of: Vec<f32> = values.iter().map(|&value| value as f32).collect();
    let of = line.apply_of(&device, &of)?;
    bits.extend(of.iter().map(|value| u64::from(value.to_bits())));

    let bodies: Vec<_> = (0..2000_u16)
        .map(|i| Body {
            x: f64::from(i % 13),
            y: f64::from(i % 17),
            z: f64::from(i),
            mass: 1.0,
        })
        .collect();
    let accelerations = Gravity::new(0.1)?.accelerations_of(&device, &bodies)?;
    bits.extend(accelerations.as_flattened().iter().map(|a| a.to_bits()));
    Ok(bits)
}

/// Runs the test `name` again after the shell's `before`, in the thread that starts the
/// process.
fn alone(name: &str, before: &str) {
    child::passes(
        name,
        Command::new("sh")
            .arg("-c")
            .arg(format!(
                "{before}; exec \"$0\" --exact \"$1\" --nocapture --test-threads=1"
            ))
            .arg(std::env::current_exe().expect("the path of this test"))
            .arg(name),
    );
}

#[test]
fn a_forked_process_computes_the_same() {
    const NAME: &str = "a_forked_process_computes_the_same";
    if !child::is(NAME) {
        return alone(NAME, "true");
    }
    let before = everything().expect("what the CPU computes");
    // SAFETY: the new process computes and ends at once. The other threads are idle, so none
    // of them held a lock that it needs.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        let same = everything().is_ok_and(|bits| bits == before);
        // SAFETY: nothing of this process is needed any more.
        unsafe { libc::_exit(if same { 42 } else { 43 }) };
    }
    let start = Instant::now();
    let mut status = 0;
    // SAFETY: the process that was made above, and a place for its status.
    while unsafe { libc::waitpid(forked, &raw mut status, libc::WNOHANG) } == 0 {
        if start.elapsed() > Duration::from_secs(60) {
            // SAFETY: it has not been waited for, so the number is still its own.
            unsafe { libc::kill(forked, libc::SIGKILL) };
            panic!("the forked process hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42);
    assert!(everything().expect("what the CPU computes") == before);
}

#[test]
fn without_threads_the_calling_one_computes() {
    const NAME: &str = "without_threads_the_calling_one_computes";
    if child::is(NAME) {
        let refused = std::thread::Builder::new().spawn(|| {});
        assert!(refused.is_err(), "a stack of 64 TiB");
        everything().expect("what the CPU computes");
        return;
    }
    alone(NAME, "export RUST_MIN_STACK=70368744177664");
}

#[test]
fn a_derivative_of_many_short_planes_takes_no_memory_beside_the_fields() {
    const NAME: &str = "a_derivative_of_many_short_planes_takes_no_memory_beside_the_fields";
    let planes: usize = 1 << test_cases::either(21, 24);
    if !child::is(NAME) {
        // Two fields, a copy, and the address space of a process with two threads.
        let kibibytes = 303_392 + 3 * 4 * planes / 1024;
        let limits = format!("export RAYON_NUM_THREADS=2; ulimit -v {kibibytes}");
        return alone(NAME, &limits);
    }
    let shape = Shape3::new(1, 1, planes);
    let device = Device::cpu();
    let plan = Grid3::new(shape, [1.0; 3])
        .and_then(|grid| FiniteDifferences3d::new(&grid))
        .and_then(|differences| differences.plan(&device))
        .expect("a legal shape");
    let f = device.alloc_filled(planes, 1.0_f32).expect("a field");
    let mut df = device.alloc_filled(planes, 1.0_f32).expect("a field");
    plan.derivative(Axis::Z, &f, &mut df)
        .expect("a legal shape");
    assert!(
        df.to_vec()
            .expect("a copy")
            .iter()
            .all(|&value| value == 0.0)
    );
}

#[test]
fn potentials_without_room_are_an_error() {
    const NAME: &str = "potentials_without_room_are_an_error";
    if !child::is(NAME) {
        // Bodies of 64 MiB and potentials of 32 MiB; the bodies in f64 are 128 MiB more.
        return alone(NAME, "export RAYON_NUM_THREADS=2; ulimit -v 280000");
    }
    let device = Device::cpu();
    let gravity = Gravity::new(0.1).expect("a legal softening");
    let bodies = device.alloc_filled(1 << 22, Body::<f32>::default());
    let bodies = bodies.expect("64 MiB");
    let mut potentials = device.alloc_filled(1 << 22, 0.0_f64).expect("32 MiB");
    for refused in [
        gravity
            .plan(&device, 1 << 22)
            .and_then(|mut plan| plan.potentials(&bodies, &mut potentials)),
        potential_energy(&gravity, bodies.as_host_slice().expect("host memory")).map(drop),
    ] {
        assert!(
            matches!(refused, Err(Error::HostOutOfMemory { requested }) if requested == 128 << 20),
            "{refused:?}"
        );
    }
}
