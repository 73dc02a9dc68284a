//! Whose memory it is: buffers that go while work uses them, buffers that change places
//! within recorded work, and memory from elsewhere.

use halo_gpu::heat2d::{Heat2d, problem};
use halo_gpu::nbody::{Body, Gravity};
use halo_gpu::{Buffer, Device, DeviceKind, Error, Shape2, reduction};
use halo_tests::{devices, for_each, rng};
use rand::RngExt;

/// Bodies in a cube.
fn bodies(n: usize) -> Vec<Body<f32>> {
    let mut rng = rng();
    let mut place = || rng.random_range(-1.0_f32..1.0);
    (0..n)
        .map(|_| Body {
            x: place(),
            y: place(),
            z: place(),
            mass: 1.0,
        })
        .collect()
}

/// A buffer is moved to another handle and back, after the work that uses it. The plan of the
/// accelerations, and its memory, end with this call.
fn apply(
    gravity: &Gravity,
    bodies: &Buffer<Body<f32>>,
    accelerations: &mut Buffer<[f32; 3]>,
) -> Result<(), Error> {
    let mut plan = gravity.plan(bodies.device(), bodies.len())?;
    plan.accelerations(bodies, accelerations)
}

#[test]
fn a_buffer_that_moves_keeps_its_elements() {
    for_each("moves", devices(), |ref device| {
        let beside = device.new_handle().unwrap();
        assert_ne!(&beside, device);
        let n = match device.kind() {
            DeviceKind::Cuda => 70_001,
            DeviceKind::Cpu | DeviceKind::Emulator => 301,
        };
        let (bodies, gravity) = (bodies(n), Gravity::new(0.1).unwrap());
        let mut expected = device.alloc_filled(n, [f32::NAN; 3]).unwrap();
        let read = device.upload(&bodies).unwrap();
        apply(&gravity, &read, &mut expected).unwrap();
        let expected = expected.to_vec().unwrap();
        for _ in 0..3 {
            // The copies take less time than the work: a copy that does not wait would see NaN.
            let mut there = beside.alloc_filled(n, [f32::NAN; 3]).unwrap();
            apply(&gravity, &read, &mut there).unwrap_err();
            let read = beside.upload(&bodies).unwrap();
            apply(&gravity, &read, &mut there).unwrap();
            let here = there.move_to(device).unwrap();
            assert_eq!(here.device(), device);
            let mut copy = device.alloc_filled(n, [0.0; 3]).unwrap();
            copy.copy_from(&here).unwrap();
            let back = here.move_to(&beside).unwrap();
            drop(read.move_to(device).unwrap());
            assert!(copy.to_vec().unwrap() == expected, "on {}", device.name());
            assert!(back.to_vec().unwrap() == expected, "on {}", device.name());
        }
        // To other devices, through the host.
        for other in devices() {
            let moved = device.upload(&[1_u16, 2, 3]).unwrap();
            let moved = moved.shaped(Shape2::new(3, 1)).unwrap();
            let moved = moved.move_to(&other).unwrap();
            assert_eq!(moved.shape(), Shape2::new(3, 1).into());
            assert_eq!(moved.device(), &other);
            assert_eq!(moved.to_vec().unwrap(), [1, 2, 3]);
        }
    });
}

/// Memory outlives the handle that has allocated it, and the handle that has used it last.
#[test]
fn memory_outlives_its_handles() {
    for_each("outlives", devices(), |ref device| {
        for n in [1, 1000, 3_000_001] {
            for _ in 0..4 {
                let beside = device.new_handle().unwrap();
                let own = device.alloc_filled(n, 1.5_f32).unwrap();
                let theirs = beside.alloc_filled(n, 2.5_f32).unwrap();
                let own = own.move_to(&beside).unwrap();
                let theirs = theirs.move_to(device).unwrap();
                drop(beside);
                drop(own);
                let mut again = device.alloc_filled(n, f32::NAN).unwrap();
                again.copy_from(&theirs).unwrap();
                drop(theirs);
                let other = device.alloc_filled(n, 3.5_f32).unwrap();
                assert!(again.to_vec().unwrap().iter().all(|&it| it == 2.5));
                assert!(other.to_vec().unwrap().iter().all(|&it| it == 3.5));
            }
        }
    });
}

/// Writes of the host after a copy to the device has been enqueued do not change the copy, and a
/// copy to the host is complete when it is read.
#[test]
fn copies_of_the_host_s_memory_are_over_before_it_is_used_again() {
    for_each("copies", devices(), |ref device| {
        // Milliseconds over PCI Express.
        let n = match device.kind() {
            DeviceKind::Cuda => 10_000_019,
            DeviceKind::Cpu | DeviceKind::Emulator => 10_007,
        };
        let mut host = device.alloc_host::<u32>(n).unwrap();
        let mut buffers: Vec<_> = (0..4).map(|_| device.zeros(n).unwrap()).collect();
        for (number, buffer) in buffers.iter_mut().enumerate() {
            host.as_mut_slice().unwrap().fill(number as u32 + 1);
            buffer.copy_from_host(&host).unwrap();
        }
        host.as_mut_slice().unwrap().fill(0);
        for (number, buffer) in buffers.iter().enumerate() {
            buffer.copy_to_host(&mut host).unwrap();
            let right = |&it: &u32| it == number as u32 + 1;
            assert!(host.as_slice().unwrap().iter().all(right), "{number}");
        }
        // Dropped while a copy may be under way.
        buffers[0].copy_to_host(&mut host).unwrap();
        drop(host);
        assert!(buffers[0].to_vec().unwrap().iter().all(|&it| it == 1));
    });
}

/// A kernel's input is dropped while it runs. (Later allocations may get its memory, but are used
/// after the kernel in the stream.)
#[test]
fn a_buffer_that_is_dropped_stays_until_the_work_is_done() {
    for_each("drops", devices(), |ref device| {
        // Milliseconds on a GPU, so that the host drops it during the kernel.
        let n = match device.kind() {
            DeviceKind::Cuda => 70_001,
            DeviceKind::Cpu | DeviceKind::Emulator => 301,
        };
        let (bodies, gravity) = (bodies(n), Gravity::new(0.1).unwrap());
        let others = vec![
            Body {
                x: f32::NAN,
                y: f32::NAN,
                z: f32::NAN,
                mass: f32::NAN
            };
            n
        ];
        let mut kept = device.alloc_filled(n, [f32::NAN; 3]).unwrap();
        let read = device.upload(&bodies).unwrap();
        apply(&gravity, &read, &mut kept).unwrap();
        let expected = kept.to_vec().unwrap();
        assert!(expected.iter().flatten().all(|value| value.is_finite()));
        for _ in 0..5 {
            kept.fill([f32::NAN; 3]).unwrap();
            let read = device.upload(&bodies).unwrap();
            let mut lost = device.alloc_filled(n, [0.0; 3]).unwrap();
            apply(&gravity, &read, &mut lost).unwrap();
            apply(&gravity, &read, &mut kept).unwrap();
            drop((read, lost));
            // As large as the memory just freed.
            let next = device.upload(&others).unwrap();
            let next_lost = device.alloc_filled(n, [f32::NAN; 3]).unwrap();
            assert!(kept.to_vec().unwrap() == expected, "on {}", device.name());
            drop((next, next_lost));
        }
    });
}

/// Two plates exchange buffers, and so do the accelerations of two steps: a graph, which contains
/// addresses, must have the same effect as its work.
#[test]
fn recorded_iterations_and_steps_go_on_from_replay_to_replay() {
    let heat = Heat2d::dirichlet(Shape2::new(67, 45)).unwrap();
    let initial = problem::hot_left_wall::<f32>(heat.shape()).unwrap();
    let gravity = Gravity::new(0.1).unwrap();
    let (bodies, still) = (bodies(93), vec![[0.0; 3]; 93]);
    for_each("recordings", devices(), |ref device| {
        // One run, and then this many at each of three replays.
        for (iterations, count) in [(1, 1), (1, 2), (3, 1), (2, 3)] {
            let mut plate = heat.start(device, &initial).unwrap();
            plate.iterate(iterations).unwrap(); // what is allocated at first
            let mut replay = device.record(count, || plate.iterate(iterations)).unwrap();
            (0..3).for_each(|_| replay.run().unwrap());
            drop(replay);
            plate.iterate(1).unwrap();
            let all = iterations * (2 + 3 * count) + 1;
            assert_eq!(plate.iterations(), all as u64);
            let expected = heat.iterate_of(&Device::cpu(), &initial, all).unwrap();
            assert!(plate.field().unwrap() == expected, "{iterations}, {count}");
        }

        let start = || gravity.start(device, &bodies, &still, 0.001).unwrap();
        let (mut recorded, mut plain) = (start(), start());
        let mut replay = device.record(1, || recorded.advance(3)).unwrap();
        (0..3).for_each(|_| replay.run().unwrap());
        drop(replay);
        plain.advance(12).unwrap();
        assert_eq!(recorded.steps(), plain.steps());
        assert_eq!(recorded.bodies().unwrap(), plain.bodies().unwrap());
    });
}

/// In place of memory that CUDA code of the caller's has allocated: another buffer's.
#[test]
fn memory_from_elsewhere_is_a_buffer_on_cuda_devices_alone() {
    for_each("memory from elsewhere", devices(), |ref device| {
        let values: Vec<i64> = {
            let mut rng = rng();
            (0..10_007).map(|_| rng.random_range(-1000..1000)).collect()
        };
        let sum: i64 = values.iter().sum();
        let theirs = device.upload(&values).unwrap();
        let view = |device: &Device| {
            let address = theirs.device_address();
            // SAFETY: the elements are there as long as `theirs`, which is neither used nor
            // dropped before `view` is and the sum has been waited for.
            unsafe { Buffer::<i64>::from_device_address(device, address, values.len()) }
        };
        match (view(device), device.kind()) {
            (Ok(mut view), DeviceKind::Cuda) => {
                assert_eq!(reduction::sum(&view).unwrap(), sum);
                view.fill(1).unwrap();
                assert_eq!(reduction::sum(&view).unwrap(), values.len() as i64);
                drop(view);
                assert_eq!(theirs.to_vec().unwrap(), vec![1; values.len()]);
            }
            (Err(Error::NotCuda { .. }), DeviceKind::Cpu | DeviceKind::Emulator) => {}
            (result, kind) => panic!("{kind:?}: {result:?}"),
        }
    });
}
