//! How the library uses a CUDA driver, tested with a stand-in for one and
//! without any, so that it is tested on machines without a GPU.
//!
//! The driver is loaded once per process, so each case runs in a child process
//! with its own `LD_LIBRARY_PATH`.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

mod child;

use cuda_std::host::{In, Kernel, Out, ParamPack, Symbol};
use halo_gpu::Scalar;
use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::heat2d::{Heat2d, Plate, Variant};
use halo_gpu::heat3d::Heat3d;
use halo_gpu::nbody::{Body, Gravity};
use halo_gpu::stencil::{Neighbourhood, PointUpdate, Reach, Stencil};
use halo_gpu::{
    AddressMode, Axis, Buffer, Constants, CubinFault, Device, DeviceKind, Error, Field2, Field3,
    Grid2, Grid3, Image, LaunchAxis, LaunchConfig, Priority, Shape2, Shape3, Texture2d,
    blocks_per_multiprocessor, launch, launch_with_constants,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

const LOG: &str = "FAKE_CUDA_LOG";

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

enum Driver {
    /// A file that the dynamic linker finds first and refuses.
    Broken,
    /// The stand-in, told to be like this.
    Fake(&'static str),
    /// The stand-in without the functions that older drivers lack.
    Old,
}

/// Runs `body` in a process of its own that finds `driver`. `name` is the
/// calling test, which the child process runs again.
fn alone(name: &str, driver: Driver, body: fn()) {
    if child::is(name) {
        return body();
    }
    let folder = Folder(std::env::temp_dir().join(format!("halo-{name}-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a temporary folder");
    let library = folder.0.join("libcuda.so.1");
    let words = match driver {
        Driver::Broken => {
            std::fs::write(&library, b"").expect("an empty file");
            ""
        }
        Driver::Fake(words) => {
            build_fake_driver(&library, &[]);
            words
        }
        Driver::Old => {
            build_fake_driver(&library, &["--cfg=old"]);
            ""
        }
    };
    child::passes(
        name,
        Command::new(std::env::current_exe().expect("the path of this test"))
            .args(["--exact", name, "--nocapture"])
            .env("LD_LIBRARY_PATH", &folder.0)
            .env("FAKE_CUDA", words)
            .env(LOG, folder.0.join("log")),
    );
}

/// Puts the stand-in there, which is compiled once for all tests with these options.
fn build_fake_driver(library: &Path, options: &[&str]) {
    static AS_IT_IS: OnceLock<Vec<u8>> = OnceLock::new();
    static WITH_OPTIONS: OnceLock<Vec<u8>> = OnceLock::new();
    let compiled = if options.is_empty() {
        &AS_IT_IS
    } else {
        &WITH_OPTIONS
    };
    let compiled = compiled.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../rust-cuda/cust/tests/fixtures/fake_driver.rs");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let status = Command::new(rustc)
            .args(["--edition=2024", "--crate-type=cdylib", "-Cpanic=abort"])
            .args(options)
            .arg("-o")
            .arg(library)
            .arg(source)
            .status()
            .expect("rustc");
        assert!(status.success(), "the fake driver does not compile");
        std::fs::read(library).expect("the compiled driver")
    });
    std::fs::write(library, compiled).expect("a copy of the driver");
}

/// What the fake driver noted since the last call.
fn noted() -> Vec<String> {
    let path = std::env::var(LOG).expect("set by the parent");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(&path, "").expect("the log");
    text.lines().map(str::to_owned).collect()
}

/// A kernel that only PTX has: `fake(input: &[f32], output: *mut f32, number: u32)`.
struct Fake;

// SAFETY: no PTX of the library has it; the fake driver reads these parameters.
unsafe impl Kernel for Fake {
    const NAME: &'static str = "fake";
    type Args<'a> = (In<'a, f32>, Out<'a, f32>, u32);

    fn pack(args: &Self::Args<'_>, pack: &mut ParamPack) {
        pack.push_address(args.0.addr());
        pack.push_len(args.0.len());
        pack.push_address(args.1.addr());
        pack.push_value(&args.2);
    }

    unsafe fn run_thread(_: &Self::Args<'_>) {
        unreachable!("this kernel is for the fake driver")
    }
}

/// A constant of four floats; the name is the only thing that differs.
macro_rules! constant {
    ($type:ident, $name:literal) => {
        struct $type;

        // SAFETY: the fake driver has it, in this size or (for a test) another,
        // which is checked; nothing runs in the emulator here.
        unsafe impl Symbol for $type {
            const NAME: &'static str = $name;
            type Value = [f32; 4];

            fn host_address() -> *mut [f32; 4] {
                std::ptr::null_mut()
            }
        }
    };
}

constant!(FakeConstant, "FAKE_CONSTANT");
constant!(FakeShortConstant, "FAKE_SHORT_CONSTANT");
constant!(FakeMissingConstant, "FAKE_MISSING_CONSTANT");

const PTX: &str = "//\n.version 8.0\n.target sm_75\n.visible .entry fake(\n";

/// The same with the kernel of a stencil.
const PTX_OF_WAVE: &str = "//\n.version 8.0\n.target sm_75\n.visible .entry wave_step(\n";

/// Device 0 with a kernel that the fake driver knows.
fn device_with_kernel() -> Device {
    // SAFETY: the PTX has no kernel of this library.
    unsafe { Device::cuda_with_ptx(0, PTX) }.expect("device 0 of the fake driver")
}

#[test]
fn without_a_driver_the_error_says_what_is_missing() {
    alone(
        "without_a_driver_the_error_says_what_is_missing",
        Driver::Broken,
        || {
            let error = Device::cuda(0).expect_err("an empty file is no driver");
            let text = error.to_string();
            let Error::DriverMissing { searched, reason } = error else {
                panic!("{error:?}");
            };
            assert!(searched.starts_with("libcuda.so.1, "), "{searched}");
            assert!(reason.contains("libcuda.so.1"), "{reason}");
            assert!(
                text.starts_with("no usable CUDA driver: ") && text.contains("install the NVIDIA"),
                "{text}"
            );
            assert!(matches!(
                Device::cuda_count(),
                Err(Error::DriverMissing { .. })
            ));
            assert_eq!(Device::best().kind(), DeviceKind::Cpu);
        },
    );
}

#[test]
fn a_driver_without_devices_is_not_a_missing_driver() {
    alone(
        "a_driver_without_devices_is_not_a_missing_driver",
        Driver::Fake("no-device"),
        || {
            assert_eq!(Device::cuda_count().expect("there is a driver"), 0);
            assert!(matches!(Device::cuda(0), Err(Error::NoDevice)));
        },
    );
}

#[test]
fn devices_are_described_and_numbered() {
    alone(
        "devices_are_described_and_numbered",
        Driver::Fake(""),
        || {
            assert_eq!(Device::cuda_count().expect("there is a driver"), 2);
            let error = Device::cuda(2).expect_err("0 and 1 are all there are");
            assert_eq!(
                error.to_string(),
                "there is no CUDA device 2: ordinals must be below 2 here"
            );
            let device = Device::cuda(1).expect("device 1 of the fake driver");
            assert_eq!(device.kind(), DeviceKind::Cuda);
            assert_eq!(device.name(), "Fake GPU");
            let properties = device.properties();
            assert_eq!(properties.multiprocessors, 7);
            assert_eq!(properties.total_memory, Some(64 * 1024));
            // 1 GHz, two transfers each, 1024 bits.
            assert_eq!(properties.peak_memory_bandwidth, Some(256e9));
            assert_eq!(properties.ptx_target.as_deref(), Some("sm_90"));
            assert_eq!(
                properties
                    .driver_version
                    .map(|it| it.to_string())
                    .as_deref(),
                Some("12.4")
            );
            assert_eq!(device.limits().shared_bytes_opt_in, 227 * 1024);
            assert_eq!(device.limits().block.z, 64);
        },
    );
}

#[test]
fn everything_is_given_back_in_order() {
    alone(
        "everything_is_given_back_in_order",
        Driver::Fake(""),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let buffer = device.upload(&[1.0_f32; 10]).expect("enough memory");
            assert_eq!(noted(), ["retain", "upload 40 bytes"]);
            drop(device);
            assert_eq!(noted(), [""; 0], "the buffer keeps its device");
            drop(buffer);
            assert_eq!(
                noted(),
                [
                    "free in stream order",
                    "destroy pool, 0 allocations left",
                    "destroy stream",
                    "release, 0 contexts on the stack",
                ]
            );
        },
    );
}

#[test]
fn memory_from_elsewhere_is_used_and_left() {
    alone(
        "memory_from_elsewhere_is_used_and_left",
        Driver::Fake(""),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let mut theirs = device.upload(&[1_u64, 2, 3]).expect("a buffer");
            let address = theirs.device_address();
            let _ = noted();
            {
                // SAFETY: the elements are there, and nobody else uses them here.
                let view = unsafe { Buffer::<u64>::from_device_address(&device, address, 3) };
                let mut view = view.expect("a view");
                assert_eq!(view.device_address(), address);
                assert_eq!(view.to_vec().expect("its elements"), [1, 2, 3]);
                view.copy_from_slice(&[4, 5, 6]).expect("an upload");
            }
            let calls = noted();
            assert!(
                !calls.iter().any(|call| call.starts_with("free")),
                "{calls:?}"
            );
            assert_eq!(theirs.to_vec().expect("its elements"), [4, 5, 6]);
            theirs.fill(0).expect("still there");
            let _ = noted();
            drop(theirs);
            assert_eq!(noted(), ["free in stream order"]);

            for wrong in [0, address + 4, address + 8] {
                // SAFETY: refused before it is used.
                let view = unsafe { Buffer::<u64>::from_device_address(&device, wrong, 3) };
                let error = view.expect_err("no address of a u64");
                assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");
                assert!(error.to_string().contains("multiple of 16"), "{error}");
            }
            // SAFETY: as above.
            let view = unsafe { Buffer::<u64>::from_device_address(&device, address, usize::MAX) };
            let error = view.expect_err("more than there can be");
            assert!(matches!(error, Error::IndexOverflow { .. }), "{error}");
        },
    );
}

/// Waiting for the stream would report the fault.
#[test]
fn copies_of_page_locked_memory_do_not_wait() {
    alone(
        "copies_of_page_locked_memory_do_not_wait",
        Driver::Fake("fault"),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let mut buffer = device.zeros::<f32>(5).expect("enough memory");
            let mut host = device.alloc_host::<f32>(5).expect("enough memory");
            let values = host.as_mut_slice().expect("no copy yet");
            values.copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0]);
            noted();
            buffer.copy_from_host(&host).expect("a queued copy");
            host.as_mut_slice().expect("the end of the copy").fill(0.0);
            buffer.copy_to_host(&mut host).expect("a queued copy");
            assert_eq!(noted(), ["upload 20 bytes"]);
            let values = host.as_slice().expect("the end of the copy");
            assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 5.0]);
            let waits = buffer.to_vec().expect_err("the fault");
            assert!(matches!(waits, Error::Driver { code: 777, .. }), "{waits}");

            let refused = device.record(1, || {
                buffer.copy_from_host(&host)?;
                Ok(())
            });
            let refused = refused.expect_err("a graph does not keep the host's memory");
            assert!(
                matches!(refused, Error::NotReplayable { .. } | Error::Driver { .. }),
                "{refused}"
            );
            noted();
            drop(host);
            assert_eq!(noted(), ["free host memory"]);
        },
    );
}

#[test]
fn memory_goes_from_stream_to_stream() {
    alone(
        "memory_goes_from_stream_to_stream",
        Driver::Fake(""),
        || {
            let device = device_with_kernel();
            let beside = device.new_handle().expect("another stream");
            let buffer = device.upload(&[1_u32, 2, 3]).expect("enough memory");
            let address = buffer.device_address();
            noted();
            let buffer = buffer.move_to(&beside).expect("the same memory");
            assert_eq!(buffer.device_address(), address);
            let calls = noted();
            assert!(
                matches!(&calls[..], [wait] if wait.starts_with("wait for event")),
                "{calls:?}"
            );
            assert_eq!(buffer.to_vec().expect("its elements"), [1, 2, 3]);

            // A graph that writes memory goes on writing it, and nothing else.
            let kept = std::cell::RefCell::new(Vec::new());
            let mut own = vec![buffer, beside.upload(&[4_u32; 3]).expect("enough memory")];
            let mut replay = beside
                .record(1, || {
                    let mut buffer = own.pop().expect("one per run");
                    buffer.fill(7)?;
                    kept.borrow_mut().push(buffer);
                    Ok(())
                })
                .expect("a recording");
            let written = kept.borrow_mut().pop().expect("what the graph writes");
            assert_eq!(written.device_address(), address);
            let mut moved = written.move_to(&device).expect("a copy");
            assert_ne!(moved.device_address(), address);
            moved.fill(5).expect("device memory");
            replay.run().expect("a replay");
            assert_eq!(moved.to_vec().expect("its elements"), [5; 3]);
            noted();
            drop(replay);
            let calls = noted();
            assert!(
                calls.contains(&"free in stream order".to_owned()),
                "{calls:?}"
            );

            // Memory of somebody else stays theirs.
            let (theirs, len) = (moved.device_address(), moved.len());
            // SAFETY: the elements are there, and nobody writes them here.
            let view = unsafe { Buffer::<u32>::from_device_address(&device, theirs, len) };
            let copied = view.and_then(|view| view.move_to(&beside));
            let copied = copied.expect("a copy");
            assert_ne!(copied.device_address(), theirs);
            assert_eq!(copied.to_vec().expect("its elements"), [5; 3]);

            let refused = device.record(1, || {
                let scratch = beside.zeros::<u8>(1)?;
                scratch.move_to(&device)?;
                Ok(())
            });
            // Once for real, and then within the recording.
            let refused = refused.expect_err("a graph keeps to one stream");
            assert!(matches!(refused, Error::NotReplayable { .. }), "{refused}");
        },
    );
}

/// Some drivers crash if memory of a pool is freed in another stream and the pool is then
/// destroyed.
#[test]
fn memory_returns_to_the_handle_that_allocated_it() {
    alone(
        "memory_returns_to_the_handle_that_allocated_it",
        Driver::Fake(""),
        || {
            let device = device_with_kernel();
            let beside = device.new_handle().expect("another stream");
            let buffer = beside.upload(&[1_u32, 2, 3]).expect("enough memory");
            let buffer = buffer.move_to(&device).expect("the same memory");
            noted();
            drop(beside);
            let calls = noted();
            assert!(
                !calls.iter().any(|it| it.starts_with("destroy pool")),
                "{calls:?}"
            );
            assert_eq!(buffer.to_vec().expect("its elements"), [1, 2, 3]);
            noted();
            drop(buffer);
            let calls = noted();
            let [wait, calls @ ..] = &calls[..] else {
                panic!("{calls:?}");
            };
            assert!(wait.starts_with("wait for event"), "{wait}");
            assert_eq!(
                calls,
                [
                    "free in stream order",
                    "destroy pool, 0 allocations left",
                    "destroy stream"
                ]
            );

            // Memory that moves there and back: no stream waits for itself.
            let beside = device.new_handle().expect("another stream");
            let buffer = device.upload(&[4_u32]).expect("enough memory");
            let there = buffer.move_to(&beside).expect("the same memory");
            let back = there.move_to(&device).expect("the same memory");
            noted();
            drop(back);
            assert_eq!(noted(), ["free in stream order"]);
            // Memory that another handle uses last.
            let buffer = device.upload(&[5_u32]).expect("enough memory");
            let there = buffer.move_to(&beside).expect("the same memory");
            noted();
            drop(there);
            let calls = noted();
            assert!(
                matches!(&calls[..], [wait, free]
                    if wait.starts_with("wait for event") && free == "free in stream order"),
                "{calls:?}"
            );
        },
    );
}

/// Waiting for a stream would report the fault.
#[test]
fn a_stream_waits_for_events_and_the_host_does_not() {
    alone(
        "a_stream_waits_for_events_and_the_host_does_not",
        Driver::Fake("fault"),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let beside = device.new_handle().expect("another stream");
            let other = Device::cuda(1).expect("device 1 of the fake driver");
            let event = device.record_event().expect("an event");
            assert_eq!(event.device(), &device);
            noted();
            for waits in [&beside, &other] {
                waits.wait_event(&event).expect("queued");
            }
            let calls = noted();
            assert_eq!(calls.len(), 2, "{calls:?}");
            assert_eq!(calls[0], calls[1]);
            assert!(calls[0].starts_with("wait for event"), "{calls:?}");
            assert!(event.is_complete().expect("its state"));
            event.synchronize().expect("its end");
            Device::cpu().wait_event(&event).expect("its end");
            let past = Device::emulator().record_event().expect("an event");
            assert!(past.is_complete().expect("its state"));
            device.wait_event(&past).expect("nothing to wait for");
            assert_eq!(noted(), [""; 0]);
        },
    );
}

#[test]
fn a_graph_holds_no_event() {
    alone("a_graph_holds_no_event", Driver::Fake(""), || {
        let device = device_with_kernel();
        let event = device.record_event().expect("an event");
        let events: [&dyn Fn() -> Result<(), Error>; 3] = [
            &|| device.record_event().map(drop),
            &|| device.wait_event(&event),
            &|| event.synchronize(),
        ];
        for work in events {
            let refused = device.record(1, work).expect_err("no part of a graph");
            assert!(matches!(refused, Error::NotReplayable { .. }), "{refused}");
        }
        work_goes_on(&device);
    });
}

/// What was refused has left the device as it was.
fn work_goes_on(device: &Device) {
    let buffer = device.alloc_filled(3, 7_u32).expect("enough memory");
    assert_eq!(buffer.to_vec().expect("its elements"), [7; 3]);
}

#[test]
fn a_handle_has_the_priority_it_was_given() {
    alone(
        "a_handle_has_the_priority_it_was_given",
        Driver::Fake(""),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let told = || {
                let mut calls = noted();
                calls.retain(|call| call.starts_with("stream of priority"));
                calls
            };
            let _urgent = device.new_handle_with(Priority::High).expect("a stream");
            assert_eq!(told(), ["stream of priority -5"]);
            let _beside = device.new_handle().expect("a stream");
            assert_eq!(told(), [""; 0]);
        },
    );
}

/// Waiting for a stream would report the fault.
#[test]
fn copies_between_devices_do_not_wait() {
    alone(
        "copies_between_devices_do_not_wait",
        Driver::Fake("fault"),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let beside = device.new_handle().expect("another stream");
            let other = Device::cuda(1).expect("device 1 of the fake driver");
            let mut host = device.alloc_host::<u32>(4).expect("enough memory");
            let values = host.as_mut_slice().expect("no copy yet");
            values.copy_from_slice(&[1, 2, 3, 4]);
            let mut source = device.zeros::<u32>(6).expect("enough memory");
            let mut part = source.view_mut(1..5).expect("a view");
            part.copy_from_host(&host).expect("a queued copy");
            let mut near = beside.zeros::<u32>(6).expect("enough memory");
            let mut far = other.zeros::<u32>(6).expect("enough memory");
            noted();
            near.copy_across(&source).expect("a queued copy");
            let calls = noted();
            // The target waits for the source, and then the source for the copy.
            assert!(
                matches!(&calls[..], [before, copy, after]
                    if before.starts_with("wait for event") && copy == "copy 24 bytes"
                        && after.starts_with("wait for event") && before != after),
                "{calls:?}"
            );
            let mut half = far.view_mut(..3).expect("a view");
            half.copy_across(source.view(2..5).expect("a view"))
                .expect("a queued copy");
            let calls = noted();
            // The first time, each device is let into the pool of the other.
            assert!(
                matches!(&calls[..], [before, second, first, copy, after]
                    if before.starts_with("wait for event")
                        && second == "let device 0 in" && first == "let device 1 in"
                        && copy.starts_with("copy 12 bytes from context")
                        && after.starts_with("wait for event") && before != after),
                "{calls:?}"
            );
            let mut half = far.view_mut(..3).expect("a view");
            half.copy_across(source.view(2..5).expect("a view"))
                .expect("a queued copy");
            assert_eq!(noted().len(), 3);
            let moved = far.move_to(&device).expect("a queued copy");
            let mut back = device.alloc_host::<u32>(6).expect("enough memory");
            moved.copy_to_host(&mut back).expect("a queued copy");
            assert_eq!(back.as_slice().expect("its end"), [2, 3, 4, 0, 0, 0]);
            let mut three = beside.alloc_host::<u32>(3).expect("enough memory");
            let view = near.view(1..4).expect("a view");
            view.copy_to_host(&mut three).expect("a queued copy");
            assert_eq!(three.as_slice().expect("its end"), [1, 2, 3]);

            let short = near.copy_across(&beside.zeros::<u32>(5).expect("enough memory"));
            let short = short.expect_err("another length");
            assert!(matches!(short, Error::LengthMismatch { .. }), "{short}");
            let refused = near.view(..).expect("a view").copy_to_host(&mut back);
            let refused = refused.expect_err("memory for another handle");
            assert!(matches!(refused, Error::DeviceMismatch { .. }), "{refused}");
        },
    );
}

#[test]
fn without_pools_freeing_waits() {
    alone(
        "without_pools_freeing_waits",
        Driver::Fake("no-pools"),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let buffer = device.alloc_filled(3, 7_u8).expect("enough memory");
            assert_eq!(buffer.to_vec().expect("a copy"), [7; 3]);
            drop(buffer);
            assert_eq!(noted(), ["retain", "set 3 bytes", "free"]);
        },
    );
}

#[test]
fn buffers_hold_what_was_put_there() {
    alone("buffers_hold_what_was_put_there", Driver::Fake(""), || {
        fn round_trip<T: halo_gpu::Element + PartialEq + std::fmt::Debug>(
            device: &Device,
            value: T,
            values: &[T],
        ) {
            let mut buffer = device.upload(values).expect("enough memory");
            assert_eq!(buffer.to_vec().expect("a copy"), values);
            buffer.fill(value).expect("device memory");
            assert_eq!(
                buffer.to_vec().expect("a copy"),
                vec![value; values.len()],
                "filled"
            );
            let source = device.upload(values).expect("enough memory");
            buffer.copy_from(&source).expect("the same device");
            assert_eq!(buffer.to_vec().expect("a copy"), values, "copied");
            for len in [0, 1, 2, 3, 5, 8, 1000] {
                let filled = device.alloc_filled(len, value).expect("enough memory");
                assert_eq!(filled.to_vec().expect("a copy"), vec![value; len]);
                assert_eq!(filled.len(), len);
            }
        }

        let device = Device::cuda(0).expect("device 0 of the fake driver");
        round_trip(&device, 0x5A_u8, &[1, 2, 3]);
        round_trip(&device, 0x1234_u16, &[1, 2, 3]);
        round_trip(&device, 0.0_f32, &[1.0, 2.0, 3.0]);
        round_trip(&device, 1.5_f32, &[1.0, 2.0, 3.0]);
        round_trip(&device, 1.5_f64, &[1.0, 2.0, 3.0, 4.0, 5.0]);
        round_trip(&device, [1.0_f32, 2.0, 3.0], &[[4.0; 3]; 7]);
        round_trip(&device, u128::MAX - 1, &[1, 2]);
        assert!(
            noted().contains(&"set 1000 words".to_owned()),
            "32-bit values have a function of their own"
        );

        let empty = device.upload::<f32>(&[]).expect("nothing to allocate");
        assert!(empty.is_empty());
        assert_eq!(empty.to_vec().expect("nothing to copy"), [0.0; 0]);
        assert_ne!(In::from(&empty).addr(), 0);
    });
}

#[test]
fn buffers_of_other_devices_are_refused() {
    alone(
        "buffers_of_other_devices_are_refused",
        Driver::Fake(""),
        || {
            let one = Device::cuda(0).expect("device 0 of the fake driver");
            let other = Device::cuda(0).expect("device 0 of the fake driver");
            let source = other.upload(&[1.0_f32]).expect("enough memory");
            let mut target = one.upload(&[2.0_f32]).expect("enough memory");
            let error = target.copy_from(&source).expect_err("another stream");
            assert_eq!(
                error.to_string(),
                "the buffer to copy from is on another Fake GPU, but the operation runs on Fake GPU"
            );
            let host = Device::cpu().upload(&[1.0_f32]).expect("host memory");
            let error = target.copy_from(&host).expect_err("another kind");
            assert_eq!(
                error.to_string(),
                "the buffer to copy from is on cpu, but the operation runs on Fake GPU"
            );
        },
    );
}

#[test]
fn running_out_of_memory_says_how_much_there_is() {
    alone(
        "running_out_of_memory_says_how_much_there_is",
        Driver::Fake("small"),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let _some = device.alloc_filled(1024, 0_u8).expect("enough memory");
            noted();
            let error = device
                .alloc_filled(64 * 1024, 0_u8)
                .expect_err("more than there is");
            assert_eq!(
                error.to_string(),
                "out of memory on Fake GPU: 65536 bytes were requested, 64512 of 65536 are free"
            );
            assert_eq!(noted(), ["trim pool"], "after one more attempt");
            let error = device
                .alloc_filled(usize::MAX / 2, 0.0_f64)
                .expect_err("no such size");
            assert!(matches!(error, Error::IndexOverflow { .. }), "{error}");
        },
    );
}

#[test]
fn launches_pass_geometry_arguments_and_constants() {
    alone(
        "launches_pass_geometry_arguments_and_constants",
        Driver::Fake(""),
        || {
            let device = device_with_kernel();
            let input = device.upload(&[1.0_f32; 5]).expect("enough memory");
            let mut output = device.alloc_filled(5, 0.0_f32).expect("enough memory");
            noted();
            let config = LaunchConfig::new((2, 3, 4), (32, 5)).with_dynamic_shared_bytes(64);
            let mut run = |config: &LaunchConfig, constants: Constants<'_>| {
                let args = (In::from(&input), Out::from(&mut output), 42);
                // SAFETY: the fake driver's kernel touches nothing.
                unsafe { launch_with_constants::<Fake>(&device, config, &constants, args) }
            };

            run(&config, Constants::new()).expect("a launch");
            let launched = "launch fake grid 2 3 4 block 32 5 1 shared 64 len 5 number 42";
            assert_eq!(
                noted(),
                [
                    "find fake".to_owned(),
                    format!("{launched} constant [0.0, 0.0, 0.0, 0.0]"),
                ]
            );

            // Uploaded when it is new, kept otherwise.
            let value = [1.0, 2.0, 3.0, 4.0];
            let with_value = format!("{launched} constant [1.0, 2.0, 3.0, 4.0]");
            let constants = || Constants::new().with::<FakeConstant>(&value);
            run(&config, constants()).expect("a launch");
            assert_eq!(noted(), ["upload 16 bytes", &with_value]);
            run(&config, constants()).expect("a launch");
            assert_eq!(noted(), [with_value.as_str()]);
            run(&config, Constants::new()).expect("a launch");
            assert_eq!(noted(), [with_value.as_str()]);

            let error = run(&config, Constants::new().with::<FakeShortConstant>(&value))
                .expect_err("8 bytes");
            assert!(
                matches!(
                    error,
                    Error::SymbolSize {
                        symbol: "FAKE_SHORT_CONSTANT",
                        required: 8,
                        given: 16
                    }
                ),
                "{error}"
            );
            let error = run(
                &config,
                Constants::new().with::<FakeMissingConstant>(&value),
            )
            .expect_err("no such constant");
            assert!(
                matches!(error, Error::SymbolNotFound { symbol } if symbol.contains("MISSING")),
                "{error}"
            );
            assert_eq!(noted(), [""; 0], "nothing was launched");

            // More shared memory than 48 KiB is opted in to, once.
            let config = config.with_dynamic_shared_bytes(100_000);
            run(&config, Constants::new()).expect("a launch");
            run(&config, Constants::new()).expect("a launch");
            let noted = noted();
            assert_eq!(noted[0], "opt in to 100000 bytes");
            assert_eq!(noted.len(), 3, "{noted:?}");

            let config = LaunchConfig::new(1, (32, 2)).with_dynamic_shared_bytes(7);
            let blocks = blocks_per_multiprocessor::<Fake>(&device, &config).expect("a number");
            assert_eq!(blocks, 64_007);
        },
    );
}

#[test]
fn limits_of_device_and_kernel_are_checked_first() {
    alone(
        "limits_of_device_and_kernel_are_checked_first",
        Driver::Fake(""),
        || {
            let device = device_with_kernel();
            let input = device.upload(&[1.0_f32; 5]).expect("enough memory");
            let mut output = device.alloc_filled(5, 0.0_f32).expect("enough memory");
            let mut refused = |config: LaunchConfig| {
                let args = (In::from(&input), Out::from(&mut output), 42);
                // SAFETY: the fake driver's kernel touches nothing.
                let result = unsafe { launch::<Fake>(&device, &config, args) };
                match result.expect_err("too much") {
                    Error::LaunchLimit {
                        kernel: "fake",
                        axis,
                        required,
                        given,
                    } => (axis, required, given),
                    error => panic!("{error:?}"),
                }
            };
            assert_eq!(
                refused(LaunchConfig::new((1, 65_536), 1)),
                (
                    LaunchAxis::GridY,
                    "at least 1 and at most 65535".to_owned(),
                    65_536
                )
            );
            assert_eq!(
                refused(LaunchConfig::new(1, 1024)),
                (
                    LaunchAxis::ThreadsPerBlock,
                    "at most 512, for the registers that the kernel needs".to_owned(),
                    1024
                )
            );
            // Within the device's limit, but not with the kernel's static KiB.
            assert_eq!(
                refused(LaunchConfig::new(1, 32).with_dynamic_shared_bytes(227 * 1024)),
                (
                    LaunchAxis::SharedBytes,
                    format!("at most {}", 227 * 1024),
                    228 * 1024
                )
            );
            assert!(noted().iter().all(|line| !line.starts_with("launch")));
        },
    );
}

#[test]
fn ptx_that_cannot_be_loaded_is_explained() {
    alone(
        "ptx_that_cannot_be_loaded_is_explained",
        Driver::Fake(""),
        || {
            // SAFETY: none of these has a kernel of this library.
            let load = |ptx: &str| unsafe { Device::cuda_with_ptx(0, ptx) };
            let error = load("not PTX at all").expect_err("not PTX");
            assert_eq!(
                error.to_string(),
                "the driver refused the PTX, which is for an unknown target (PTX ISA unknown), \
                 on Fake GPU, which has compute capability 9.0 and a driver for CUDA 12.4; \
                 its log says:\n\
                 ptxas application ptx input, line 1; fatal: Missing .version"
            );
            let error = load("half a \0 string").expect_err("a zero byte");
            assert!(error.to_string().contains("byte 7 is zero"), "{error}");
            let error = load(".version 99.0\n.target sm_90\n").expect_err("too new");
            assert_eq!(
                error.to_string(),
                "PTX for sm_90 (PTX ISA 99.0) cannot run on Fake GPU, which has compute \
                 capability 9.0 and a driver for CUDA 12.4; a device of at least sm_90 and a \
                 driver that knows PTX ISA 99.0 are needed; the driver's log says:\n\
                 ptxas application ptx input, line 1; fatal: Unsupported .version 99.0"
            );
            // Everything as fields, and said also where the driver says nothing.
            let refused = |target: &str| {
                load(&format!(
                    ".version 8.0\n.target {target}\n// refuse silently"
                ))
                .expect_err("refused")
            };
            match refused("sm_80") {
                Error::InvalidPtx {
                    ptx_target,
                    ptx_version,
                    device,
                    compute_capability,
                    driver_version,
                    jit_log,
                } => {
                    assert_eq!(
                        (ptx_target.as_str(), ptx_version.as_str()),
                        ("sm_80", "8.0")
                    );
                    assert_eq!(device, "Fake GPU");
                    assert_eq!(compute_capability.to_string(), "9.0");
                    assert_eq!(driver_version.to_string(), "12.4");
                    assert!(jit_log.contains("an empty log") && jit_log.contains("218"));
                }
                error => panic!("{error:?}"),
            }
            // Drivers call PTX for a newer device invalid, too.
            match refused("sm_100") {
                Error::UnsupportedPtx {
                    ptx_target,
                    jit_log,
                    ..
                } => assert_eq!((ptx_target.as_str(), jit_log.as_str()), ("sm_100", "")),
                error => panic!("{error:?}"),
            }
            let loaded = noted();
            assert_eq!(
                loaded
                    .iter()
                    .filter(|line| line.starts_with("release"))
                    .count(),
                5,
                "each attempt cleans up: {loaded:?}"
            );

            let device = load(".version 8.0\n.target sm_75\n").expect("PTX without kernels");
            let input = device.upload(&[1.0_f32]).expect("enough memory");
            let mut output = device.upload(&[1.0_f32]).expect("enough memory");
            let args = (In::from(&input), Out::from(&mut output), 0);
            // SAFETY: there is no such kernel.
            let error = unsafe { launch::<Fake>(&device, &LaunchConfig::new(1, 1), args) }
                .expect_err("no such kernel");
            assert_eq!(
                error.to_string(),
                "the loaded code has no kernel fake; was it built from other sources?"
            );
        },
    );
}

#[test]
fn devices_below_the_lowest_target_are_refused() {
    alone(
        "devices_below_the_lowest_target_are_refused",
        Driver::Fake("sm_70"),
        || {
            let error = Device::cuda(0).expect_err("7.0 is below 7.5");
            let text = error.to_string();
            assert!(
                matches!(&error, Error::UnsupportedPtx { ptx_target, .. } if ptx_target == "sm_75"),
                "{error:?}"
            );
            assert!(text.contains("compute capability 7.0"), "{text}");
            // The driver was not asked, and has no log.
            assert!(
                text.ends_with("that knows PTX ISA 6.3 are needed"),
                "{text}"
            );
        },
    );
}

#[test]
fn a_launch_that_fails_names_its_kernel() {
    alone(
        "a_launch_that_fails_names_its_kernel",
        Driver::Fake("no-launch"),
        || {
            let device = device_with_kernel();
            let input = device.upload(&[1.0_f32; 5]).expect("enough memory");
            let mut output = device.alloc_filled(5, 0.0_f32).expect("enough memory");
            let args = (In::from(&input), Out::from(&mut output), 42);
            // SAFETY: the fake driver's kernel touches nothing.
            let error = unsafe { launch::<Fake>(&device, &LaunchConfig::new(1, 32), args) }
                .expect_err("no launches");
            assert_eq!(
                error.to_string(),
                "cuLaunchKernel for fake failed with CUDA_ERROR_FROM_THE_FUTURE (777): \
                 something that only newer drivers report"
            );
            assert!(
                matches!(
                    error,
                    Error::Driver {
                        kernel: Some("fake"),
                        code: 777,
                        ..
                    }
                ),
                "{error:?}"
            );
            // So does one by the library.
            let heat = Heat2d::dirichlet(Shape2::new(5, 5)).expect("a shape");
            let initial = Field2::filled(heat.shape(), 0.0_f32).expect("memory");
            let plan = heat.plan_with(&device, Variant::March).expect("memory");
            let mut plate = plan.start(&initial).expect("enough memory");
            let error = plate.iterate(1).expect_err("no such kernel");
            assert!(error.to_string().contains("heat2d_march_f32"), "{error}");
        },
    );
}

#[test]
fn a_driver_without_a_function_is_too_old() {
    alone(
        "a_driver_without_a_function_is_too_old",
        Driver::Old,
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let error = device.record(1, || Ok(())).expect_err("no graphs");
            assert_eq!(
                error.to_string(),
                "the CUDA driver (12.4) has no function cuStreamBeginCapture_v2; a newer driver is needed"
            );
            assert!(
                matches!(
                    &error,
                    Error::DriverTooOld { function: "cuStreamBeginCapture_v2", driver_version }
                        if driver_version == "12.4"
                ),
                "{error:?}"
            );
            // Everything else works.
            device.synchronize().expect("nothing fails");
        },
    );
}

#[test]
fn codes_that_nobody_knew_keep_their_number() {
    alone(
        "codes_that_nobody_knew_keep_their_number",
        Driver::Fake("fault"),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let error = device.synchronize().expect_err("a fault");
            assert_eq!(
                error.to_string(),
                "cuStreamSynchronize failed with CUDA_ERROR_FROM_THE_FUTURE (777): \
                 something that only newer drivers report"
            );
        },
    );
}

#[test]
fn textures_lie_in_aligned_rows() {
    alone("textures_lie_in_aligned_rows", Driver::Fake(""), || {
        let device = Device::cuda(0).expect("device 0 of the fake driver");
        let values: Vec<f32> = (0..51).map(|n| n as f32).collect();
        let mut texture = Texture2d::from_slice(&device, 17, 3, AddressMode::Border, &values)
            .expect("enough memory");
        assert_eq!(texture.pitch(), 24);
        assert_eq!(texture.handle(), 0x7E);
        assert_eq!(texture.to_vec().expect("a copy"), values);
        assert_eq!(Out::from(&mut texture).len(), 3 * 24);
        drop(texture);
        let noted = noted();
        assert!(
            noted.contains(&"texture 17 x 3 pitch 96 reading [3, 3, 3, 0, 0]".to_owned()),
            "{noted:?}"
        );
        let at = |line| noted.iter().position(|it| it == line);
        assert!(
            at("destroy texture 0x7e").expect("destroyed")
                < at("free in stream order").expect("freed")
        );

        let error = Texture2d::new(&device, 0, 3, AddressMode::Clamp).expect_err("no width");
        assert_eq!(
            error.to_string(),
            "Texture2d: width is 0, but must be at least 1 and at most 131072 on this device"
        );
        let error = Texture2d::new(&device, 1, 65_001, AddressMode::Clamp).expect_err("too high");
        assert!(
            matches!(error, Error::InvalidSize { axis: "height", .. }),
            "{error}"
        );
    });
}

#[test]
fn time_is_that_between_events() {
    alone("time_is_that_between_events", Driver::Fake(""), || {
        let device = Device::cuda(0).expect("device 0 of the fake driver");
        let time = device.time(|| Ok(())).expect("two events");
        assert_eq!(time, Duration::from_millis(1));
        let mut runs = 0;
        let times = device
            .time_each(2, 3, || {
                runs += 1;
                Ok(())
            })
            .expect("four events");
        assert_eq!(times, [Duration::from_millis(1); 3]);
        assert_eq!(runs, 5);
    });
}

#[test]
fn a_context_that_was_current_still_is() {
    alone(
        "a_context_that_was_current_still_is",
        Driver::Fake(""),
        || {
            use cuda_loader::sys;
            cuda_loader::load().expect("the fake driver");
            let mine = sys::CUcontext(std::ptr::without_provenance_mut(0xBEEF));
            let current = || {
                let mut current = sys::CUcontext::NULL;
                // SAFETY: the pointer is good for one handle.
                let code = unsafe { sys::cuCtxGetCurrent(&raw mut current) };
                assert_eq!(code, sys::CUresult::SUCCESS);
                current
            };
            // SAFETY: to the fake driver a context is a number.
            let code = unsafe { sys::cuCtxPushCurrent_v2(mine) };
            assert_eq!(code, sys::CUresult::SUCCESS);
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            assert_eq!(current(), mine);
            let buffer = device.upload(&[1.0_f32]).expect("enough memory");
            assert_eq!(current(), mine);
            drop((buffer, device));
            assert_eq!(current(), mine);
        },
    );
}

/// A cubin for compute capability 9.0 that the fake driver reads `text` from.
fn cubin(text: &str) -> Vec<u8> {
    let mut image = vec![0_u8; 3 * 64];
    image[..9].copy_from_slice(b"\x7fELF\x02\x01\x01\x41\x08");
    image[18] = 190; // machine
    image[40] = 64; // start of the section table
    image[49] = 90; // generation
    image[58] = 64; // bytes of a section's header
    image[60] = 2; // sections
    image.extend_from_slice(text.as_bytes());
    image.push(0);
    image
}

#[test]
fn kernels_from_elsewhere_stand_in_while_they_are_in_use() {
    alone(
        "kernels_from_elsewhere_stand_in_while_they_are_in_use",
        Driver::Fake(""),
        || {
            // Its kernels are module 1: module 0 is that of the handle it is from.
            let mut replaceable = device_with_kernel()
                .with_replaceable_kernels()
                .expect("another handle");
            let device = replaceable.device().clone();
            // SAFETY: the fake driver's kernels touch nothing.
            let load = |text: &str| unsafe {
                let image = cubin(text);
                device.load_kernels(Image::Cubin(&image))
            };
            let twin = load(".entry fake .entry other").expect("a cubin");
            let input = device.upload(&[1.0_f32; 5]).expect("enough memory");
            let mut output = device.alloc_filled(5, 0.0_f32).expect("enough memory");
            let value = [1.0, 2.0, 3.0, 4.0];
            let mut run = || {
                let config = LaunchConfig::new(1, 32);
                let constants = Constants::new().with::<FakeConstant>(&value);
                let args = (In::from(&input), Out::from(&mut output), 42);
                // SAFETY: the fake driver's kernels touch nothing.
                unsafe { launch_with_constants::<Fake>(&device, &config, &constants, args) }
            };
            let launched = |which: &str| {
                format!(
                    "launch {which} grid 1 1 1 block 32 1 1 shared 0 len 5 number 42 \
                     constant [1.0, 2.0, 3.0, 4.0]"
                )
            };

            noted();
            replaceable
                .using(&twin, &mut run)
                .expect("its device")
                .expect("a launch");
            // Constants are each module's own.
            assert_eq!(
                noted(),
                [
                    "find fake",
                    "upload 16 bytes",
                    &launched("fake of module 2")
                ]
            );
            run().expect("a launch");
            assert_eq!(
                noted(),
                [
                    "find fake",
                    "upload 16 bytes",
                    &launched("fake of module 1")
                ]
            );

            // SAFETY: as above.
            let renamed = unsafe { twin.clone().with_entry("fake", "other") };
            replaceable
                .using(&renamed, &mut run)
                .expect("its device")
                .expect("a launch");
            assert_eq!(noted(), ["find other", &launched("other of module 2")]);
            // On every thread, and on no other handle of the device.
            let beside = device.new_handle().expect("another handle");
            let source = beside.upload(&[1.0_f32; 5]).expect("enough memory");
            let mut target = beside.alloc_filled(5, 0.0_f32).expect("enough memory");
            let mut run_beside = || {
                let config = LaunchConfig::new(1, 32);
                let constants = Constants::new().with::<FakeConstant>(&value);
                let args = (In::from(&source), Out::from(&mut target), 42);
                // SAFETY: the fake driver's kernels touch nothing.
                unsafe { launch_with_constants::<Fake>(&beside, &config, &constants, args) }
            };
            let both = replaceable.using(&renamed, || {
                std::thread::scope(|scope| scope.spawn(&mut run).join().expect("no panic"))?;
                run_beside()
            });
            both.expect("its device").expect("launches");
            let noted_launches: Vec<String> = noted()
                .into_iter()
                .filter(|line| line.starts_with("launch"))
                .collect();
            assert_eq!(
                noted_launches,
                [launched("other of module 2"), launched("fake of module 3")]
            );

            // Never the device's own in the place of one that is missing.
            let lacking = load(".entry unrelated").expect("a cubin");
            let error = replaceable.using(&lacking, &mut run).expect("its device");
            assert!(
                matches!(error, Err(Error::KernelNotFound { kernel: "fake" })),
                "{error:?}"
            );
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                replaceable.using(&lacking, || panic!("in use"))
            }));
            assert!(panicked.is_err());
            noted();
            run().expect("the device's own again");
            assert_eq!(noted(), [launched("fake of module 1")]);

            let mut other = device_with_kernel()
                .with_replaceable_kernels()
                .expect("another handle");
            let error = other.using(&twin, || ()).expect_err("of another device");
            assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
            drop(other);
            noted();
            drop(twin);
            assert_eq!(noted(), [""; 0], "its clone is still there");
            drop(renamed);
            assert_eq!(noted(), ["unload module 2"]);
        },
    );
}

#[test]
fn machine_code_that_cannot_be_loaded_is_explained() {
    alone(
        "machine_code_that_cannot_be_loaded_is_explained",
        Driver::Fake(""),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            noted();
            let refusal = |image: &[u8]| {
                // SAFETY: none of these is loaded.
                unsafe { device.load_kernels(Image::Cubin(image)) }
                    .expect_err("no machine code for this device")
                    .to_string()
            };
            assert_eq!(
                refusal(b"not ELF"),
                "the machine code is not an ELF file; a cubin is needed, as `nvcc -cubin` writes it"
            );
            let whole = cubin("");
            assert!(
                refusal(&whole[..100])
                    .contains("truncated: it has 100 bytes, but needs at least 192")
            );
            // SAFETY: nothing is loaded.
            let error = unsafe { device.load_kernels(Image::Cubin(&whole[..100])) }.unwrap_err();
            let fault = CubinFault::CutOff {
                bytes: 100,
                needed: 192,
            };
            assert!(
                matches!(error, Error::InvalidCubin { fault: it } if it == fault),
                "{error}"
            );
            let mut older = whole;
            older[49] = 86;
            assert_eq!(
                refusal(&older),
                "machine code for compute capability 8.6 cannot run on Fake GPU, which has 9.0; \
                 compile it for that"
            );
            assert_eq!(noted(), [""; 0], "the driver has seen none of them");
            let text = refusal(&cubin("refuse"));
            assert!(
                text.contains("rejected by the driver") && text.contains("200"),
                "{text}"
            );
            // SAFETY: it is not loaded.
            let error = unsafe { device.load_kernels(Image::Ptx("no PTX")) };
            assert!(matches!(error, Err(Error::InvalidPtx { .. })), "{error:?}");

            let emulator = Device::emulator();
            // SAFETY: it is not loaded.
            let error = unsafe { emulator.load_kernels(Image::Ptx("")) }.expect_err("no GPU");
            assert_eq!(
                error.to_string(),
                "loading kernels needs a CUDA device, but emulator is not one"
            );
        },
    );
}

#[test]
fn recorded_work_is_replayed_as_it_was() {
    alone(
        "recorded_work_is_replayed_as_it_was",
        Driver::Fake(""),
        || {
            let device = device_with_kernel();
            let input = device.upload(&[1.0_f32; 5]).expect("enough memory");
            let mut output = device.alloc_filled(5, 0.0_f32).expect("enough memory");
            let mut copy = device.alloc_filled(5, 0.0_f32).expect("enough memory");
            let config = LaunchConfig::new(1, 32);
            let recorded = [1.0, 2.0, 3.0, 4.0];
            let run = |output: &mut Buffer<f32>, value: &[f32; 4]| {
                let constants = Constants::new().with::<FakeConstant>(value);
                let args = (In::from(&input), Out::from(output), 42);
                // SAFETY: the fake driver's kernels touch nothing.
                unsafe { launch_with_constants::<Fake>(&device, &config, &constants, args) }
            };
            let launched = "launch fake grid 1 1 1 block 32 1 1 shared 0 len 5 number 42 \
                            constant [1.0, 2.0, 3.0, 4.0]";
            noted();
            let mut replay = device
                .record(2, || {
                    run(&mut output, &recorded)?;
                    copy.copy_from(&input)?;
                    copy.fill(0.5)
                })
                .expect("a recording");
            assert_eq!(
                noted(),
                [
                    // Once for real, which loads and sets what a graph cannot.
                    "find fake",
                    "upload 16 bytes",
                    launched,
                    "copy 20 bytes",
                    "set 5 words",
                    "begin capture",
                    "end capture of 6 nodes",
                    "destroy stream",
                    "destroy graph",
                ]
            );
            assert_eq!(replay.count(), 2);
            replay.run().expect("a replay");
            let once = [launched, "copy 20 bytes", "set 5 words"];
            let whole = [&["launch graph:"], &once[..], &once[..]].concat();
            assert_eq!(noted(), whole);

            // Constants that somebody has changed meanwhile are set again.
            let mut scratch = device.alloc_filled(5, 0.0_f32).expect("enough memory");
            run(&mut scratch, &[9.0; 4]).expect("a launch");
            noted();
            replay.run().expect("a replay");
            assert_eq!(noted(), [&["upload 16 bytes"], &whole[..]].concat());

            // Memory goes back once no graph can use it.
            drop(scratch);
            assert_eq!(noted(), [""; 0]);
            drop(replay);
            assert_eq!(
                noted(),
                ["destroy executable graph", "free in stream order"]
            );
            drop(output);
            assert_eq!(noted(), ["free in stream order"]);
        },
    );
}

/// Derivatives along each axis, a Laplacian and a gradient of one field in turns: each is
/// a launch and nothing else, though each has weights of its own.
fn alternate<T: Scalar>(device: &Device, shape: Shape3) {
    let plan = Grid3::new(shape, [0.1, 0.2, 0.4])
        .and_then(|grid| FiniteDifferences3d::<T>::new(&grid))
        .and_then(|differences| differences.plan(device))
        .expect("a grid");
    let points = shape.points().expect("few");
    let field = || {
        device
            .alloc_filled(points, T::nearest(0.0))
            .expect("enough memory")
    };
    let (f, mut along, mut laplacian) = (field(), field(), field());
    let mut gradient = [field(), field(), field()];
    let mut work = || {
        plan.derivative(Axis::X, &f, &mut along)?;
        plan.laplacian(&f, &mut laplacian)?;
        plan.derivative(Axis::Y, &f, &mut along)?;
        plan.gradient(&f, gradient.each_mut())?;
        plan.derivative(Axis::Z, &f, &mut along)?;
        plan.second_derivative(Axis::X, &f, &mut along)?;
        plan.derivative(Axis::X, &f, &mut along)
    };
    work().expect("launches"); // which loads the kernels
    noted();
    work().expect("launches");
    let launches = noted();
    assert_eq!(launches.len(), 7, "{launches:?}");
    assert!(
        launches
            .iter()
            .all(|call| call.starts_with("launch derivative3d_")),
        "{launches:?}"
    );
    assert_eq!(launches[0], launches[6]);

    let mut replay = device.record(2, &mut work).expect("a recording");
    assert!(noted().contains(&"end capture of 14 nodes".to_owned()));
    replay.run().expect("a replay");
    let graph = ["launch graph:".to_owned()];
    assert_eq!(noted(), [&graph, &launches[..], &launches].concat());
}

#[test]
fn operators_in_turns_neither_copy_nor_wait() {
    alone(
        "operators_in_turns_neither_copy_nor_wait",
        Driver::Fake("note-waits"),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            // Rows of whole accesses, and others.
            for shape in [Shape3::new(8, 6, 5), Shape3::new(7, 6, 5)] {
                alternate::<f64>(&device, shape);
                alternate::<f32>(&device, shape);
            }
        },
    );
}

#[test]
fn memory_that_recorded_work_gave_away_outlives_the_graph() {
    alone(
        "memory_that_recorded_work_gave_away_outlives_the_graph",
        Driver::Fake(""),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let source = device.upload(&[1.0_f32; 5]).expect("enough memory");
            let mut targets: Vec<_> = (0..3)
                .map(|_| device.upload(&[0.0_f32; 5]).expect("enough memory"))
                .collect();
            noted();
            let mut replay = device
                .record(1, || {
                    let mut target = targets.pop().expect("one per run");
                    target.copy_from(&source)
                })
                .expect("a recording");
            assert!(!noted().contains(&"free in stream order".to_owned()));
            replay.run().expect("a replay");
            assert_eq!(noted(), ["launch graph:", "copy 20 bytes"]);
            drop(replay);
            assert_eq!(
                noted(),
                [
                    "destroy executable graph",
                    "free in stream order",
                    "free in stream order"
                ]
            );
        },
    );
}

#[test]
fn what_a_graph_cannot_hold_is_refused() {
    alone(
        "what_a_graph_cannot_hold_is_refused",
        Driver::Fake(""),
        || {
            let device = device_with_kernel();
            let input = device.upload(&[1.0_f32; 5]).expect("enough memory");
            let mut output = device.alloc_filled(5, 0.0_f32).expect("enough memory");
            // Each is fine in the first, real run, and refused when recorded.
            type Work<'a> = Box<dyn FnMut() -> Result<(), Error> + 'a>;
            let mut number = 0.0;
            let works: [(&str, Work<'_>); 7] = [
                ("waiting", Box::new(|| device.synchronize())),
                ("allocating", Box::new(|| device.upload(&[1]).map(drop))),
                ("to the host", Box::new(|| input.to_vec().map(drop))),
                ("measuring", Box::new(|| device.time(|| Ok(())).map(drop))),
                (
                    "another recording",
                    Box::new(|| device.record(1, || Ok(())).map(drop)),
                ),
                (
                    "loading",
                    Box::new(|| {
                        // SAFETY: it has no kernel of this library.
                        unsafe { device.load_kernels(Image::Ptx(PTX)) }.map(drop)
                    }),
                ),
                (
                    "changes a constant",
                    Box::new(|| {
                        number += 1.0;
                        let value = [number; 4];
                        let constants = Constants::new().with::<FakeConstant>(&value);
                        let args = (In::from(&input), Out::from(&mut output), 42);
                        let config = LaunchConfig::new(1, 32);
                        // SAFETY: the fake driver's kernels touch nothing.
                        unsafe { launch_with_constants::<Fake>(&device, &config, &constants, args) }
                    }),
                ),
            ];
            for (what, mut work) in works {
                noted();
                let error = device.record(1, &mut work).expect_err(what);
                assert!(
                    matches!(error, Error::NotReplayable { .. }),
                    "{what}: {error}"
                );
                assert!(error.to_string().contains(what), "{what}: {error}");
                // The capture is over, and everything works as before.
                let noted = noted();
                let end = noted
                    .iter()
                    .rposition(|line| line.starts_with("end capture"));
                assert_eq!(
                    noted[end.expect("an end")..][..3],
                    ["end capture of 0 nodes", "destroy graph", "destroy stream"]
                );
                work().expect(what);
            }
        },
    );
}

#[test]
fn a_recording_that_fails_or_panics_leaves_nothing_behind() {
    alone(
        "a_recording_that_fails_or_panics_leaves_nothing_behind",
        Driver::Fake("no-graphs"),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let error = device.record(1, || Ok(())).expect_err("no graphs");
            assert!(
                error.to_string().contains("cuGraphInstantiateWithFlags"),
                "{error}"
            );
            let mut first = true;
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                device
                    .record(1, || {
                        assert!(std::mem::take(&mut first), "the second run panics");
                        Ok(())
                    })
                    .map(drop)
            }));
            assert!(panicked.is_err());
            device.synchronize().expect("not recording any more");
            noted();
            drop(device.upload(&[1.0_f32]).expect("enough memory"));
            assert_eq!(
                noted(),
                ["upload 4 bytes", "free in stream order"],
                "nothing is kept"
            );
        },
    );
}

#[test]
fn other_threads_are_not_recorded() {
    alone("other_threads_are_not_recorded", Driver::Fake(""), || {
        let device = Device::cuda(0).expect("device 0 of the fake driver");
        let mut mine = device.alloc_filled(4, 0.0_f32).expect("enough memory");
        let mut theirs = device.alloc_filled(8, 0.0_f32).expect("enough memory");
        noted();
        let replay = device
            .record(1, || {
                mine.fill(0.5)?;
                std::thread::scope(|scope| {
                    scope
                        .spawn(|| {
                            theirs.fill(0.5)?;
                            device.synchronize()
                        })
                        .join()
                        .expect("no panic")
                })
            })
            .expect("a recording");
        let noted = noted();
        assert!(
            noted.contains(&"end capture of 1 nodes".to_owned()),
            "{noted:?}"
        );
        assert_eq!(
            noted.iter().filter(|line| *line == "set 8 words").count(),
            2
        );
        drop(replay);
    });
}

#[test]
fn a_device_has_one_recording_at_a_time() {
    alone(
        "a_device_has_one_recording_at_a_time",
        Driver::Fake(""),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let mut results = Vec::new();
            let replay = device.record(1, || {
                let other = || device.record(1, || Ok(())).map(drop);
                let result = std::thread::scope(|scope| scope.spawn(other).join());
                results.push(result.expect("no panic"));
                Ok(())
            });
            drop(replay.expect("a recording"));
            // Nothing is recorded yet in the first, real run.
            let [Ok(()), Err(error)] = &results[..] else {
                panic!("{results:?}");
            };
            assert!(matches!(error, Error::NotReplayable { .. }), "{error}");
            assert!(error.to_string().contains("another recording"), "{error}");
            device.record(1, || Ok(())).expect("the first is over");
        },
    );
}

#[test]
fn the_stream_is_that_of_the_work() {
    alone("the_stream_is_that_of_the_work", Driver::Fake(""), || {
        let device = Device::cuda(0).expect("device 0 of the fake driver");
        let stream = || {
            device
                .with_cuda_stream(|stream| {
                    let mut context = cuda_loader::sys::CUcontext::NULL;
                    // SAFETY: the pointer is good for one handle.
                    let _ = unsafe { cuda_loader::sys::cuCtxGetCurrent(&raw mut context) };
                    assert_ne!(context, cuda_loader::sys::CUcontext::NULL);
                    stream.addr()
                })
                .expect("a CUDA device")
        };
        let mut seen = Vec::new();
        let replay = device
            .record(1, || {
                seen.push(stream());
                Ok(())
            })
            .expect("a recording");
        drop(replay);
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0], stream());
        assert_ne!(seen[1], stream(), "that of the recording");
        let error = Device::cpu().with_cuda_stream(|_| ()).expect_err("no GPU");
        assert!(matches!(error, Error::NotCuda { .. }), "{error}");
    });
}

/// A plate of 5 × 5 points of temperature 0, which the fake driver warms by 1 per iteration.
fn cold_plate(device: &Device, variant: Option<Variant>) -> Plate<f32> {
    let heat = Heat2d::dirichlet(Shape2::new(5, 5)).expect("a shape");
    let initial = Field2::filled(heat.shape(), 0.0_f32).expect("memory");
    let plate = match variant {
        Some(variant) => (heat.plan_with(device, variant)).and_then(|plan| plan.start(&initial)),
        None => heat.start(device, &initial),
    };
    plate.expect("enough memory")
}

/// The one temperature of a plate.
fn temperature(plate: &Plate<f32>) -> f32 {
    let field = plate.field().expect("a copy");
    let first = field.as_slice()[0];
    assert_eq!(field.as_slice(), vec![first; field.as_slice().len()]);
    first
}

#[test]
fn a_recorded_plate_goes_on_from_replay_to_replay() {
    alone(
        "a_recorded_plate_goes_on_from_replay_to_replay",
        Driver::Fake(""),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            // By a launch per iteration, and by one for all of a call.
            for variant in [Some(Variant::March), Some(Variant::Global), None] {
                for (count, iterations) in [(1, 1), (2, 1), (3, 1), (1, 2), (5, 3), (4, 2), (0, 1)]
                {
                    let mut plate = cold_plate(&device, variant);
                    let case = format!("{variant:?}, {count} times {iterations} iterations");
                    let mut done = 0;
                    let mut check = |plate: &Plate<f32>, more: usize| {
                        done += more;
                        assert_eq!(plate.iterations(), done as u64, "{case}");
                        assert_eq!(temperature(plate), done as f32, "{case}");
                    };
                    for replays in [0, 1, 2, 3] {
                        let mut replay = device
                            .record(count, || plate.iterate(iterations))
                            .expect("a recording");
                        for _ in 0..replays {
                            replay.run().expect("a replay");
                        }
                        drop(replay);
                        check(&plate, iterations * (1 + replays * count));
                        plate.iterate(1).expect("a launch");
                        check(&plate, 1);
                    }
                }
            }
        },
    );
}

#[test]
fn an_even_number_of_exchanges_costs_no_copy() {
    alone(
        "an_even_number_of_exchanges_costs_no_copy",
        Driver::Fake(""),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let mut one = cold_plate(&device, Some(Variant::March));
            let mut other = cold_plate(&device, Some(Variant::March));
            for (count, copies) in [(2, 0), (3, 2)] {
                let replay = device
                    .record(count, || one.iterate(1).and_then(|()| other.iterate(1)))
                    .expect("a recording");
                let mut replay = replay;
                noted();
                replay.run().expect("a replay");
                let noted = noted();
                let copied = noted.iter().filter(|line| line.starts_with("copy 100"));
                assert_eq!(copied.count(), copies, "{noted:?}");
            }
        },
    );
}

#[test]
fn recorded_iterations_on_buffers_go_on_from_replay_to_replay() {
    alone(
        "recorded_iterations_on_buffers_go_on_from_replay_to_replay",
        Driver::Fake(""),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let heat = Heat2d::dirichlet(Shape2::new(5, 5)).expect("a shape");
            for variant in [Variant::March, Variant::Resident, Variant::Texture] {
                for count in [1, 2, 5] {
                    let mut plan = heat.plan_with(&device, variant).expect("enough memory");
                    // The first launch loads the kernel.
                    let mut cold = device.upload(&[0.0_f32; 25]).expect("enough memory");
                    plan.iterate(&mut cold, count).expect("a launch");
                    let mut plate = device.upload(&[0.0_f32; 25]).expect("enough memory");
                    noted();
                    plan.iterate(&mut plate, count).expect("a launch");
                    let calls = noted();
                    let launches = calls
                        .iter()
                        .filter(|line| line.starts_with("launch heat2d_"));
                    let each = if variant == Variant::Resident {
                        count
                    } else {
                        1
                    };
                    assert_eq!(launches.count() * each, count, "{calls:?}");
                    // Of the plate: to the workspace, and for textures twice there and back.
                    let copies = calls.iter().filter(|line| line.starts_with("copy "));
                    let textures = variant == Variant::Texture;
                    assert_eq!(copies.count(), if textures { 3 } else { 1 }, "{calls:?}");
                    // Nothing is waited for, allocated or given to the host.
                    let queued = |line: &String| {
                        line.starts_with("launch heat2d_") || line.starts_with("copy ")
                    };
                    assert!(calls.iter().all(queued), "{calls:?}");

                    let mut replay = device
                        .record(3, || plan.iterate(&mut plate, count))
                        .expect("a recording");
                    replay.run().expect("a replay");
                    replay.run().expect("a replay");
                    drop(replay);
                    let warm = (count * (2 + 2 * 3)) as f32;
                    assert_eq!(plate.to_vec().expect("a copy"), [warm; 25], "{variant}");

                    // From one buffer into another.
                    let mut other = device.upload(&[0.0_f32; 25]).expect("enough memory");
                    let mut into = || plan.iterate_into(&plate, &mut other);
                    device.record(1, &mut into).expect("a recording");
                    assert_eq!(other.to_vec().expect("a copy"), [warm + 1.0; 25]);
                }
            }
        },
    );
}

/// A wave: three states that take turns.
#[derive(Debug, Clone, Copy)]
pub struct Wave;

impl PointUpdate<f32, 2, 1> for Wave {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 2] = [Reach::POINT; 2];
    const PAST: usize = 1;

    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
        [n.at::<0, 0, 0, 0>() * 2.0 - n.at::<1, 0, 0, 0>()]
    }
}

halo_stencil::stencil! {
    /// A step of the wave.
    pub wave_step: Wave, f32, (now, past) -> (next)
}

#[test]
fn exchanges_in_a_ring_are_not_recorded() {
    alone(
        "exchanges_in_a_ring_are_not_recorded",
        Driver::Fake(""),
        || {
            // SAFETY: the fake driver runs none of it.
            let device = unsafe { Device::cuda_with_ptx(0, PTX_OF_WAVE) };
            let device = device.expect("device 0 of the fake driver");
            let grid = Grid2::new(Shape2::new(5, 5), [1.0; 2]).expect("a grid");
            let stencil = Stencil::new(Wave, grid).expect("a stencil");
            let states = [&[1.0_f32; 25][..], &[2.0; 25]];
            let mut run = stencil.start(&device, states).expect("enough memory");
            // In a ring nothing would be where it was.
            for steps in [1, 2, 4] {
                let error = device.record(1, || run.steps(steps));
                let error = error.expect_err("three buffers");
                assert!(matches!(error, Error::NotReplayable { .. }), "{error}");
                if steps == 1 {
                    // As the step that was taken has left them, whose kernel writes nothing.
                    let fields = [0, 1].map(|field| run.to_vec(field).expect("a field"));
                    assert_eq!(fields, [[0.0; 25], [1.0; 25]]);
                }
            }
            // Two that come back are where they were.
            let heat = Heat2d::dirichlet(Shape2::new(5, 5)).expect("a shape");
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let plan = heat.plan_with(&device, Variant::March).expect("memory");
            let initial = Field2::filled(heat.shape(), 0.0_f32).expect("memory");
            let mut plate = plan.start(&initial).expect("enough memory");
            let there_and_back = device.record(1, || plate.iterate(2));
            there_and_back
                .expect("a recording")
                .run()
                .expect("a replay");
        },
    );
}

#[test]
fn a_plate_survives_a_recording_that_fails() {
    alone(
        "a_plate_survives_a_recording_that_fails",
        Driver::Fake(""),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let mut plate = cold_plate(&device, Some(Variant::March));
            let error = device.record(1, || plate.iterate(1).and_then(|()| device.synchronize()));
            assert!(
                matches!(error, Err(Error::NotReplayable { .. })),
                "{error:?}"
            );
            drop(error);
            // What was run for real counts, what was to be recorded does not.
            assert_eq!((plate.iterations(), temperature(&plate)), (1, 1.0));
            plate.iterate(2).expect("a launch");
            assert_eq!((plate.iterations(), temperature(&plate)), (3, 3.0));
        },
    );
}

#[test]
fn recorded_steps_are_counted_when_they_are_taken() {
    alone(
        "recorded_steps_are_counted_when_they_are_taken",
        Driver::Fake(""),
        || {
            let device = Device::cuda(0).expect("device 0 of the fake driver");
            let body = Body {
                x: 0.0_f32,
                y: 0.0,
                z: 0.0,
                mass: 1.0,
            };
            let gravity = Gravity::new(0.1).expect("a softening");
            let mut leapfrog = gravity
                .start(&device, &[body], &[[0.0; 3]], 0.5)
                .expect("enough memory");
            let replay = device
                .record(3, || leapfrog.advance(2))
                .expect("a recording");
            drop(replay);
            assert_eq!(leapfrog.steps(), 2, "those that were not recorded");
            let mut replay = device
                .record(3, || leapfrog.advance(2))
                .expect("a recording");
            replay.run().expect("a replay");
            replay.run().expect("a replay");
            drop(replay);
            assert_eq!(leapfrog.steps(), 2 + 2 + 2 * 3 * 2);
            assert_eq!(leapfrog.time(), 0.5 * 16.0);

            let shape = Shape3::new(5, 1, 1);
            let rod = Grid3::new(shape, [1.0; 3]).map(Heat3d::new);
            let initial = Field3::filled(shape, 0.0_f32).expect("memory");
            let mut run = rod
                .and_then(|rod| rod.start(&device, &initial))
                .expect("enough memory");
            let mut replay = device.record(3, || run.steps(2)).expect("a recording");
            replay.run().expect("a replay");
            replay.run().expect("a replay");
            drop(replay);
            assert_eq!(run.steps_taken(), 2 + 2 * 3 * 2);
        },
    );
}
