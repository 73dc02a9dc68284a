//! Devices, buffers, textures and launches, on the CPU and on the emulator.

use cuda_std::prelude::*;
use cuda_std::{externally_visible, launch_bounds, shared, texture};
use halo_gpu::device::{Diagnosis, Placement, ThreadOrder};
use halo_gpu::heat2d::{Heat2d, problem};
use halo_gpu::nbody::Gravity;
use halo_gpu::nbody::problem::Cluster;
use halo_gpu::{
    AddressMode, Buffer, Constants, Device, DeviceKind, Dim3, EmulatorOptions, Error, Image,
    LaunchAxis, LaunchConfig, Limits, Shape2, Texture2d, blocks_per_multiprocessor, launch,
    launch_with_constants,
};

/// Two factors for [`scale`].
#[externally_visible]
#[cuda_std::address_space(constant)]
pub static mut TEST_FACTORS: [f32; 2] = [1.0, 10.0];

/// `output[i] = factors[0] * input[i] + factors[1] * offset`.
///
/// # Safety
///
/// `output` has as many elements as `input`.
#[kernel]
pub unsafe fn scale(input: &[f32], offset: f32, output: *mut f32) {
    let i = thread::index_1d() as usize;
    if i < input.len() {
        // SAFETY: nobody writes constants while kernels run.
        let factors = unsafe { TEST_FACTORS };
        // SAFETY: in bounds, and no other thread has this index.
        unsafe { *output.add(i) = factors[0] * input[i] + factors[1] * offset };
    }
}

/// Reverses the elements of each block, through dynamic shared memory.
///
/// # Safety
///
/// The grid covers `data` exactly, and a block has shared memory for its elements.
#[kernel]
pub unsafe fn reverse_blocks(data: *mut u32, with_barrier: bool) {
    let tile = shared::dynamic_shared_mem::<u32>();
    let lane = thread::thread_idx_x() as usize;
    let width = thread::block_dim_x() as usize;
    let i = thread::index_1d() as usize;
    // SAFETY: the caller's promise; each thread has its own elements, and reads
    // another's behind the barrier (which a test leaves out).
    unsafe {
        *tile.add(lane) = *data.add(i);
        if with_barrier {
            thread::sync_threads();
        }
        *data.add(i) = *tile.add(width - 1 - lane);
    }
}

/// Writes what the texture has at (x - 1, y - 1).
///
/// # Safety
///
/// `image` is a texture, and `output` has an element for each thread.
#[kernel]
pub unsafe fn shifted(image: u64, width: usize, output: *mut f32) {
    let at = thread::index_2d();
    // SAFETY: the caller's promise.
    unsafe {
        let value = texture::tex2d(image, at.x as f32 - 0.5, at.y as f32 - 0.5);
        *output.add(at.y as usize * width + at.x as usize) = value;
    }
}

/// One element past the end.
///
/// # Safety
///
/// None that can be kept; the emulator stops it.
#[kernel]
pub unsafe fn past_the_end(data: *mut f32, len: usize) {
    // SAFETY: it is not; that is what is tested.
    unsafe { *data.add(len) = 1.0 };
}

/// Adds up without atomics.
///
/// # Safety
///
/// One element of `input` for each thread, and one of `total`.
#[kernel]
pub unsafe fn lose_updates(input: *const u32, total: *mut u32) {
    // SAFETY: inside both; the race is what is tested.
    unsafe { *total += *input.add(thread::index_1d() as usize) };
}

/// Adds one to its thread's element, in blocks of 64 threads at most.
///
/// # Safety
///
/// `data` has an element for each thread of the grid, whose blocks have one row.
#[kernel]
#[launch_bounds(64, 2)]
pub unsafe fn bounded(data: *mut u32) {
    let row = thread::thread_idx_y() * thread::block_dim_x();
    let i = row + thread::thread_idx_x();
    // SAFETY: the caller's promise; each thread has its own element.
    unsafe { *data.add(i as usize) += 1 };
}

fn emulators() -> Vec<Device> {
    let verify = |placement| {
        Device::emulator_with(EmulatorOptions {
            verify: true,
            placement,
            ..EmulatorOptions::default()
        })
    };
    vec![
        Device::emulator(),
        verify(Placement::End),
        verify(Placement::Start),
    ]
}

fn run_scale(
    device: &Device,
    input: &Buffer<f32>,
    offset: f32,
    output: &mut Buffer<f32>,
    constants: &Constants<'_>,
) -> Result<(), Error> {
    let config = LaunchConfig::new(4, 64);
    let args = scale::args(input, offset, output);
    // SAFETY: both have as many elements, and are on the device where the tests
    // want the launch to work.
    unsafe { launch_with_constants::<scale>(device, &config, constants, args) }
}

/// Views at odd elements, and a kernel that leaves alone what lies around them.
#[test]
fn kernels_take_views() {
    for device in emulators() {
        let input: Vec<f32> = (0..300_u16).map(f32::from).collect();
        let input = device.upload(&input).expect("enough memory");
        let mut output = device.alloc_filled(301, -1.0_f32).expect("enough memory");
        let read = input.view(17..272).expect("within the buffer");
        let mut written = output.view_mut(3..258).expect("within the buffer");
        let args = scale::args(read, 1.0, &mut written);
        // SAFETY: both have 255 elements, and are on the device.
        unsafe { launch::<scale>(&device, &LaunchConfig::new(4, 64), args) }.expect("a launch");
        let output = output.to_vec().expect("a copy");
        for (at, &value) in output.iter().enumerate() {
            let expected = match at {
                3..258 => (at + 14) as f32 + 10.0,
                _ => -1.0,
            };
            assert!(value == expected, "{at}: {value}");
        }
    }
}

#[test]
fn buffers_hold_what_was_put_there() {
    let mut devices = emulators();
    devices.push(Device::cpu());
    for device in devices {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let mut buffer = device.upload(&values).expect("enough memory");
        assert_eq!(buffer.to_vec().expect("a copy"), values);
        assert_eq!((buffer.len(), buffer.is_empty()), (100, false));
        assert_eq!(buffer.device(), &device);

        let copy = buffer.try_clone().expect("enough memory");
        buffer.fill(-1.5).expect("memory");
        assert_eq!(buffer.to_vec().expect("a copy"), [-1.5; 100]);
        buffer.copy_from(&copy).expect("the same device and length");
        assert_eq!(buffer.to_vec().expect("a copy"), values);
        buffer
            .copy_from_slice(&[2.0; 100])
            .expect("the same length");
        let mut back = vec![0.0; 100];
        buffer.copy_to_slice(&mut back).expect("the same length");
        assert_eq!(back, [2.0; 100]);

        let odd = device
            .alloc_filled(5000, [1_u8, 2, 3])
            .expect("enough memory");
        assert_eq!(odd.to_vec().expect("a copy"), vec![[1, 2, 3]; 5000]);

        let empty = device.upload::<f32>(&[]).expect("nothing to allocate");
        assert!(empty.is_empty() && empty.to_vec().expect("nothing to copy").is_empty());
    }
}

#[test]
fn lengths_and_devices_must_agree() {
    let device = Device::emulator();
    let mut buffer = device.alloc_filled(4, 0_u32).expect("enough memory");
    let text = |result: Result<(), Error>| result.expect_err("refused").to_string();
    assert_eq!(
        text(buffer.copy_from_slice(&[1; 5])),
        "the slice to copy from has 5 elements, but must have 4"
    );
    assert_eq!(
        text(buffer.copy_to_slice(&mut [1; 3])),
        "the slice to copy to has 3 elements, but must have 4"
    );
    let short = device.alloc_filled(3, 0_u32).expect("enough memory");
    assert_eq!(
        text(buffer.copy_from(&short)),
        "the buffer to copy from has 3 elements, but must have 4"
    );
    let elsewhere = Device::emulator()
        .alloc_filled(4, 0_u32)
        .expect("enough memory");
    assert_eq!(
        text(buffer.copy_from(&elsewhere)),
        "the buffer to copy from is on another emulator, but the operation runs on emulator"
    );
    assert_eq!(
        text(Device::cpu().require("df", &buffer)),
        "df is on emulator, but the operation runs on cpu"
    );
    assert!(device.clone().require("df", &buffer).is_ok());
    let error = device
        .alloc_filled(usize::MAX, 0_u32)
        .expect_err("no such size");
    assert!(matches!(error, Error::IndexOverflow { .. }), "{error}");
}

#[test]
fn only_the_cpu_device_shows_its_elements() {
    let mut buffer = Device::cpu().upload(&[1, 2, 3]).expect("host memory");
    buffer.as_host_mut_slice().expect("on the CPU")[1] = 7;
    assert_eq!(buffer.as_host_slice(), Some(&[1, 7, 3][..]));
    let empty = Device::cpu().upload::<i32>(&[]).expect("host memory");
    assert_eq!(empty.as_host_slice(), Some(&[][..]));
    let mut buffer = Device::emulator().upload(&[1]).expect("enough memory");
    assert_eq!(buffer.as_host_slice(), None);
    assert_eq!(buffer.as_host_mut_slice(), None);
}

#[test]
fn kernels_get_arguments_and_constants() {
    for device in emulators() {
        let values: Vec<f32> = (0..200).map(|n| n as f32).collect();
        let input = device.upload(&values).expect("enough memory");
        let mut output = device.alloc_filled(200, 0.0_f32).expect("enough memory");
        let mut check = |constants: &Constants<'_>, [a, b]: [f32; 2]| {
            run_scale(&device, &input, 3.0, &mut output, constants).expect("a launch");
            let expected: Vec<f32> = values.iter().map(|value| a * value + b * 3.0).collect();
            assert_eq!(output.to_vec().expect("a copy"), expected);
        };
        let value = [2.0, 100.0];
        check(&Constants::new(), [1.0, 10.0]); // as the source says
        check(&Constants::new().with::<TEST_FACTORS>(&value), value);
        check(&Constants::new(), value); // kept by the device
        let value = [3.0, 200.0];
        check(&Constants::new().with::<TEST_FACTORS>(&value), value);
    }
}

#[test]
fn constants_of_one_device_are_not_those_of_another() {
    std::thread::scope(|scope| {
        for factor in [1.0_f32, 2.0, 3.0, 4.0] {
            scope.spawn(move || {
                let device = Device::emulator();
                let input = device.upload(&[1.0_f32; 256]).expect("enough memory");
                let mut output = device.alloc_filled(256, 0.0_f32).expect("enough memory");
                for round in 0..20 {
                    let value = [factor, round as f32];
                    let constants = Constants::new().with::<TEST_FACTORS>(&value);
                    run_scale(&device, &input, 1.0, &mut output, &constants).expect("a launch");
                    let expected = factor + round as f32;
                    assert_eq!(output.to_vec().expect("a copy"), [expected; 256]);
                }
            });
        }
    });
}

/// A verified launch saves and restores all of its device's buffers; what other
/// threads do with theirs meanwhile must not get lost.
#[test]
fn threads_can_share_a_verifying_device() {
    let device = Device::emulator_with(EmulatorOptions {
        verify: true,
        ..EmulatorOptions::default()
    });
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let device = &device;
            scope.spawn(move || {
                let mut data = device.alloc_filled(64, 0_u32).expect("enough memory");
                for round in 0..10 {
                    let values: Vec<u32> = (0..64).map(|n| n + 100 * round + thread).collect();
                    data.copy_from_slice(&values).expect("the same length");
                    let config = LaunchConfig::new(1, 64).with_dynamic_shared_bytes(256);
                    let args = reverse_blocks::args(&mut data, true);
                    // SAFETY: one block of 64 threads for 64 elements.
                    unsafe { launch::<reverse_blocks>(device, &config, args) }.expect("a launch");
                    let reversed: Vec<u32> = values.into_iter().rev().collect();
                    assert_eq!(data.to_vec().expect("a copy"), reversed);
                }
            });
        }
    });
}

#[test]
fn a_missing_barrier_is_diagnosed() {
    let device = Device::emulator_with(EmulatorOptions {
        verify: true,
        ..EmulatorOptions::default()
    });
    let run = |with_barrier| {
        let mut data = device
            .upload(&(0..128).collect::<Vec<u32>>())
            .expect("enough memory");
        let config = LaunchConfig::new(2, 64).with_dynamic_shared_bytes(256);
        let args = reverse_blocks::args(&mut data, with_barrier);
        // SAFETY: two blocks of 64 threads for 128 elements; without the barrier
        // the emulator, where no two threads of a block run at a time, says so.
        unsafe { launch::<reverse_blocks>(&device, &config, args) }
    };
    run(true).expect("nothing is wrong with it");
    let error = run(false).expect_err("a barrier is missing");
    let Error::Emulator(diagnosis) = &error else {
        panic!("{error:?}");
    };
    assert!(
        matches!(
            **diagnosis,
            Diagnosis::OrderDependent { .. } | Diagnosis::UninitialisedRead { .. }
        ),
        "{diagnosis}"
    );
    assert!(error.to_string().contains("reverse_blocks"), "{error}");
}

#[test]
fn leaving_a_buffer_is_diagnosed() {
    let device = Device::emulator_with(EmulatorOptions {
        order: ThreadOrder::Reverse,
        ..EmulatorOptions::default()
    });
    let mut data = device.alloc_filled(64, 0.0_f32).expect("enough memory");
    let args = past_the_end::args(&mut data, 64);
    // SAFETY: the emulator's memory is guarded, and the access is stopped.
    let error = unsafe { launch::<past_the_end>(&device, &LaunchConfig::new(1, 1), args) }
        .expect_err("there is no element 64");
    let text = error.to_string();
    assert!(
        text.contains("out of bounds") && text.contains("element 64 of `data` (64 elements"),
        "{text}"
    );
    // A view is part of a buffer, which the message speaks of.
    let mut view = data.view_mut(60..64).expect("within the buffer");
    let args = past_the_end::args(&mut view, 4);
    // SAFETY: as above.
    let error = unsafe { launch::<past_the_end>(&device, &LaunchConfig::new(1, 1), args) }
        .expect_err("there is no element 64");
    let text = error.to_string();
    assert!(text.contains("element 64 of `data` (64 elements"), "{text}");
}

#[test]
fn verification_speaks_of_parameters() {
    let device = Device::emulator_with(EmulatorOptions {
        verify: true,
        ..EmulatorOptions::default()
    });
    let input = device.upload(&[1_u32; 64]).expect("enough memory");
    let mut total = device.upload(&[0_u32]).expect("enough memory");
    let args = lose_updates::args(&input, &mut total);
    // SAFETY: an element for each thread, and one for the sum; that the threads race for
    // it is what is tested.
    let error = unsafe { launch::<lose_updates>(&device, &LaunchConfig::new(2, 32), args) }
        .expect_err("all threads write the sum");
    let text = error.to_string();
    assert!(text.contains("`total`") && !text.contains("#1"), "{text}");
}

#[test]
fn limits_are_checked_before_anything_runs() {
    let mut small = Limits::SM_90;
    small.threads_per_block = 128;
    small.shared_bytes_opt_in = 1000;
    let device = Device::emulator_with(EmulatorOptions {
        limits: small,
        ..EmulatorOptions::default()
    });
    assert_eq!(device.limits(), &small);
    let cases = [
        (LaunchConfig::new(0, 1), LaunchAxis::GridX, 0),
        (LaunchConfig::new((1, 65_536), 1), LaunchAxis::GridY, 65_536),
        (
            LaunchConfig::new((1, 1, 65_536), 1),
            LaunchAxis::GridZ,
            65_536,
        ),
        (LaunchConfig::new(1, 2048), LaunchAxis::BlockX, 2048),
        (LaunchConfig::new(1, (1, 0)), LaunchAxis::BlockY, 0),
        (LaunchConfig::new(1, (1, 1, 65)), LaunchAxis::BlockZ, 65),
        (
            LaunchConfig::new(1, (16, 9)),
            LaunchAxis::ThreadsPerBlock,
            144,
        ),
        (
            LaunchConfig::new(1, 1).with_dynamic_shared_bytes(1001),
            LaunchAxis::DynamicSharedBytes,
            1001,
        ),
    ];
    for (config, expected, value) in cases {
        let mut data = device.alloc_filled(1, 0_u32).expect("enough memory");
        let args = reverse_blocks::args(&mut data, false);
        // SAFETY: refused.
        let error = unsafe { launch::<reverse_blocks>(&device, &config, args) }
            .expect_err("outside the limits");
        match &error {
            Error::LaunchLimit {
                kernel: "reverse_blocks",
                axis,
                given,
                ..
            } => assert_eq!((*axis, *given), (expected, value)),
            error => panic!("{error:?}"),
        }
    }
    let error = LaunchConfig::new(1, (16, 9))
        .check("reverse_blocks", &small)
        .expect_err("144 threads");
    assert_eq!(
        error.to_string(),
        "reverse_blocks: the number of threads per block is 144, but must be at most 128"
    );
}

#[test]
fn more_than_48_kib_of_shared_memory_needs_nothing_special() {
    let device = Device::emulator();
    let mut data = device
        .upload(&(0..64).collect::<Vec<u32>>())
        .expect("enough memory");
    let config = LaunchConfig::new(1, 64).with_dynamic_shared_bytes(200 * 1024);
    let args = reverse_blocks::args(&mut data, true);
    // SAFETY: one block of 64 threads for 64 elements.
    unsafe { launch::<reverse_blocks>(&device, &config, args) }.expect("a launch");
    assert_eq!(data.to_vec().expect("a copy")[0], 63);
}

#[test]
fn the_cpu_device_launches_nothing() {
    let device = Device::cpu();
    let mut data = device.upload(&[1_u32]).expect("host memory");
    let args = reverse_blocks::args(&mut data, true);
    // SAFETY: refused.
    let error = unsafe { launch::<reverse_blocks>(&device, &LaunchConfig::new(1, 1), args) }
        .expect_err("no kernels there");
    assert_eq!(
        error.to_string(),
        "reverse_blocks: the cpu device runs CPU ports and launches no kernels; \
         use Device::cuda or Device::emulator"
    );
    let error = Texture2d::new(&device, 1, 1, AddressMode::Clamp).expect_err("no textures there");
    assert!(matches!(error, Error::NotLaunchable { .. }), "{error}");
}

#[test]
fn textures_read_rows_and_what_is_outside() {
    let (width, height) = (17, 5);
    let values: Vec<f32> = (0..width * height).map(|n| n as f32 + 1.0).collect();
    for device in emulators() {
        for mode in [AddressMode::Clamp, AddressMode::Border] {
            let image = Texture2d::from_slice(&device, width, height, mode, &values)
                .expect("enough memory");
            assert_eq!((image.width(), image.height()), (width, height));
            assert_eq!(image.pitch(), 24, "rows of a multiple of 32 bytes");
            assert_eq!(image.to_vec().expect("a copy"), values);
            let mut output = device
                .alloc_filled(width * height, 0.0_f32)
                .expect("enough memory");
            let config = LaunchConfig::new((1, height as u32), (width as u32, 1));
            let args = shifted::args(image.handle(), width, &mut output);
            // SAFETY: the texture is on the device and outlives the launch; the
            // output has an element for each thread.
            unsafe { launch::<shifted>(&device, &config, args) }.expect("a launch");
            let output = output.to_vec().expect("a copy");
            for y in 0..height {
                for x in 0..width {
                    let expected = match mode {
                        AddressMode::Border if x == 0 || y == 0 => 0.0,
                        _ => values[y.saturating_sub(1) * width + x.saturating_sub(1)],
                    };
                    assert_eq!(output[y * width + x], expected, "({x}, {y}) {mode:?}");
                }
            }
        }
    }
}

#[test]
fn textures_are_written_as_rows() {
    let device = Device::emulator();
    let mut image = Texture2d::new(&device, 5, 2, AddressMode::Clamp).expect("enough memory");
    assert_eq!(image.to_vec().expect("a copy"), [0.0; 10]);
    let pitch = image.pitch();
    let input = device
        .upload(&vec![1.0_f32; 2 * pitch])
        .expect("enough memory");
    let args = scale::args(&input, 0.5_f32, &mut image);
    let value = [2.0_f32, 4.0];
    let constants = Constants::new().with::<TEST_FACTORS>(&value);
    // SAFETY: the texture has two rows of `pitch` elements, as many as the input.
    unsafe { launch_with_constants::<scale>(&device, &LaunchConfig::new(1, 64), &constants, args) }
        .expect("a launch");
    assert_eq!(image.to_vec().expect("a copy"), [4.0; 10]);
    let error = image.copy_from_slice(&[0.0; 9]).expect_err("10 elements");
    assert!(
        matches!(
            error,
            Error::LengthMismatch {
                required: 10,
                given: 9,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn blocks_beyond_a_kernels_launch_bounds_are_refused() {
    for device in emulators() {
        let mut data = device.alloc_filled(66, 0_u32).expect("enough memory");
        for block in [Dim3::new(64, 1, 1), Dim3::new(8, 8, 1)] {
            let config = LaunchConfig::new(1, (block.x, block.y));
            let args = bounded::args(&mut data);
            // SAFETY: one block of 64 threads for more elements.
            unsafe { launch::<bounded>(&device, &config, args) }.expect("within the bounds");
            assert!(blocks_per_multiprocessor::<bounded>(&device, &config).is_ok());
        }
        let mut expected = vec![2; 64];
        expected.extend([0, 0]);
        for (block, threads) in [((65, 1), 65), ((1, 65), 65), ((33, 2), 66)] {
            let config = LaunchConfig::new(1, block);
            let args = bounded::args(&mut data);
            let refused = [
                // SAFETY: refused before anything runs.
                unsafe { launch::<bounded>(&device, &config, args) },
                blocks_per_multiprocessor::<bounded>(&device, &config).map(|_| ()),
            ];
            for result in refused {
                let error = result.expect_err("64 threads at most");
                assert!(
                    matches!(
                        error,
                        Error::LaunchLimit { kernel: "bounded", axis: LaunchAxis::ThreadsPerBlock, given, .. }
                            if given == threads
                    ),
                    "{error}"
                );
                assert_eq!(
                    error.to_string(),
                    format!(
                        "bounded: the number of threads per block is {threads}, but must be at \
                         most 64, by the kernel's launch bounds"
                    )
                );
            }
        }
        assert_eq!(data.to_vec().expect("a copy"), expected);
    }
}

#[test]
fn time_passes_everywhere() {
    for device in [Device::cpu(), Device::emulator()] {
        let pause = std::time::Duration::from_millis(2);
        let sleep = || {
            std::thread::sleep(pause);
            Ok(())
        };
        assert!(device.time(sleep).expect("nothing fails") >= pause);
        let times = device.time_each(1, 3, sleep).expect("nothing fails");
        assert!(times.len() == 3 && times.iter().all(|time| *time >= pause));
        let error = device.time(|| Err(Error::NoDevice));
        assert!(matches!(error, Err(Error::NoDevice)));
    }
}

#[test]
fn recorded_work_is_done_again_on_every_device() {
    for device in [Device::cpu(), Device::emulator()] {
        let source = device.upload(&[1.0_f32, 2.0]).expect("enough memory");
        let mut target = device.alloc_filled(2, 0.0_f32).expect("enough memory");
        let mut runs = 0;
        let mut replay = device
            .record(3, || {
                runs += 1;
                target.copy_from(&source)
            })
            .expect("work that succeeds");
        assert_eq!((replay.count(), replay.device()), (3, &device));
        replay.run().expect("work that succeeds");
        replay.run().expect("work that succeeds");
        drop(replay);
        assert_eq!(runs, 1 + 2 * 3);
        assert_eq!(target.to_vec().expect("a copy"), [1.0, 2.0]);

        let error = device.record(1, || target.copy_from(&device.upload(&[1.0])?));
        assert!(
            matches!(error, Err(Error::LengthMismatch { .. })),
            "{error:?}"
        );
    }
}

/// As `a_recorded_plate_goes_on_from_replay_to_replay` in tests/cuda.rs, on the devices
/// that do the work again.
#[test]
fn recorded_plates_and_bodies_go_on_from_replay_to_replay() {
    let heat = Heat2d::dirichlet(Shape2::new(7, 5)).expect("a shape");
    let initial = problem::hot_left_wall::<f32>(heat.shape()).expect("memory");
    let gravity = Gravity::new(0.1).expect("a softening");
    let cluster = Cluster::<f32>::plummer(5, 1).expect("bodies");
    for device in [Device::cpu(), Device::emulator()] {
        let start = || heat.start(&device, &initial).expect("enough memory");
        for (count, iterations, replays) in [(1, 1, 1), (1, 1, 4), (3, 1, 3), (2, 3, 2), (0, 2, 1)]
        {
            let mut plate = start();
            let mut replay = device
                .record(count, || plate.iterate(iterations))
                .expect("work that succeeds");
            for _ in 0..replays {
                replay.run().expect("work that succeeds");
            }
            drop(replay);
            let done = iterations * (1 + count * replays);
            let mut plain = start();
            plain.iterate(done).expect("work that succeeds");
            assert_eq!(plate.iterations(), done as u64);
            assert_eq!(
                plate.field().expect("a copy"),
                plain.field().expect("a copy")
            );
        }

        let start = || {
            let (bodies, velocities) = (&cluster.bodies, &cluster.velocities);
            gravity
                .start(&device, bodies, velocities, 0.01)
                .expect("enough memory")
        };
        let mut leapfrog = start();
        let mut replay = device
            .record(3, || leapfrog.advance(1))
            .expect("work that succeeds");
        replay.run().expect("work that succeeds");
        drop(replay);
        let mut plain = start();
        plain.advance(4).expect("work that succeeds");
        assert_eq!((leapfrog.steps(), leapfrog.time()), (4, plain.time()));
        assert_eq!(
            leapfrog.bodies().expect("a copy"),
            plain.bodies().expect("a copy")
        );
    }
}

#[test]
fn other_kernels_and_the_stream_are_for_cuda_devices() {
    for device in [Device::cpu(), Device::emulator()] {
        // SAFETY: nothing is loaded.
        let error = unsafe { device.load_kernels(Image::Ptx("")) };
        assert!(matches!(error, Err(Error::NotCuda { .. })), "{error:?}");
        let error = device.with_cuda_stream(|_| ());
        assert!(matches!(error, Err(Error::NotCuda { .. })), "{error:?}");
    }
}

#[test]
fn devices_say_what_they_are() {
    let cpu = Device::cpu();
    let emulator = Device::emulator();
    assert_eq!((cpu.kind(), cpu.name()), (DeviceKind::Cpu, "cpu"));
    assert_eq!(
        (emulator.kind(), emulator.name()),
        (DeviceKind::Emulator, "emulator")
    );
    assert!(cpu.properties().multiprocessors >= 1);
    // Grids depend on it, and are the same on every machine.
    assert_eq!(emulator.properties().multiprocessors, 2);
    assert_eq!(emulator.limits().block, Dim3::new(1024, 1024, 64));
    assert_ne!(emulator, Device::emulator());
    assert_eq!(emulator, emulator.clone());
    fn shareable<T: Send + Sync>(_: &T) {}
    shareable(&cpu);
    shareable(&cpu.upload(&[1.0_f32]).expect("host memory"));
}

/// What other platforms say with the feature `gpu`.
#[test]
fn platforms_without_support_are_named() {
    let error = Error::UnsupportedPlatform {
        os: "plan9",
        arch: "mips",
    };
    assert_eq!(
        error.to_string(),
        "CUDA devices are supported on Linux on x86_64 and aarch64, not on plan9 on mips"
    );
    #[cfg(all(
        feature = "gpu",
        not(all(
            target_os = "linux",
            any(target_arch = "x86_64", target_arch = "aarch64")
        ))
    ))]
    for error in [Device::cuda(0).map(drop), Device::cuda_count().map(drop)] {
        match error.expect_err("not supported here") {
            Error::UnsupportedPlatform { os, arch } => {
                assert_eq!((os, arch), (std::env::consts::OS, std::env::consts::ARCH));
            }
            error => panic!("{error:?}"),
        }
    }
}

#[cfg(not(feature = "gpu"))]
#[test]
fn without_the_feature_cuda_devices_say_so() {
    let error = Device::cuda(0).expect_err("the feature is off");
    assert!(matches!(error, Error::GpuFeatureDisabled));
    assert_eq!(
        error.to_string(),
        "this build of halo-gpu has no CUDA support; enable it with `--features gpu` \
         (in Cargo.toml: halo-gpu = { …, features = [\"gpu\"] })"
    );
    assert!(matches!(
        Device::cuda_count(),
        Err(Error::GpuFeatureDisabled)
    ));
    assert_eq!(Device::best().kind(), DeviceKind::Cpu);
}
