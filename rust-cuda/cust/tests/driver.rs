//! Tests cust with a fake driver, and without a driver.
//!
//! A process loads the driver only once, so each case runs in a child process with its own
//! `LD_LIBRARY_PATH`.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use cust::context::{CurrentContext, ResourceLimit, legacy};
use cust::device::DeviceAttribute;
use cust::error::CudaError;
use cust::graph::{Graph, GraphCreationFlags, GraphNodeType};
use cust::kernel_invocation;
use cust::link::Linker;
use cust::memory::array::{ArrayFormat, ArrayObject};
use cust::memory::bytemuck::PodCastError;
use cust::memory::{
    self, AsyncCopyDestination, DeviceBox, GpuBuffer, LockedBox, LockedBuffer, MemoryAdvise,
    MemoryPool, UnifiedBox,
};
use cust::prelude::*;
use cust::stream::{CaptureMode, StreamWaitEventFlags};
use cust::surface::Surface;
use cust::texture::Texture;
use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, elf};
use std::marker::PhantomData;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const CHILD: &str = "CUST_TEST_CHILD";
const LOG: &str = "FAKE_CUDA_LOG";
const PTX: &str = include_str!("fixtures/double.ptx");

/// Runs `body` in a child process with the fake driver, whose behaviour `words` selects, or with no
/// driver. `name` is the calling test, which the child process runs again.
fn alone(name: &str, words: Option<&str>, body: fn()) {
    if std::env::var(CHILD).is_ok_and(|child| child == name) {
        return body();
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let driver = words.map_or(&[][..], |_| compiled_driver());
    std::fs::write(folder.path().join("libcuda.so.1"), driver).expect("a driver");
    let output = Command::new(std::env::current_exe().expect("the path of this test"))
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, name)
        .env("LD_LIBRARY_PATH", folder.path())
        .env("FAKE_CUDA", words.unwrap_or_default())
        .env(LOG, folder.path().join("log"))
        .output()
        .expect("a child process");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{name}:\n{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn compiled_driver() -> &'static [u8] {
    static COMPILED: OnceLock<Vec<u8>> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let library = folder.path().join("libcuda.so.1");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fake_driver.rs");
        let status = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args([
                "--edition=2024",
                "--crate-type=cdylib",
                "-Cpanic=abort",
                "-o",
            ])
            .arg(&library)
            .arg(source)
            .status()
            .expect("rustc");
        assert!(status.success(), "the stand-in does not compile");
        std::fs::read(library).expect("the compiled stand-in")
    })
}

/// The lines that the fake driver has logged since the last call.
fn noted() -> Vec<String> {
    let path = std::env::var(LOG).expect("set by the parent");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(&path, "").expect("the log");
    text.lines().map(str::to_owned).collect()
}

fn ready() -> Context {
    cust::quick_init().expect("the stand-in has a device")
}

#[test]
fn without_a_driver_every_call_fails_with_a_reason() {
    alone(
        "without_a_driver_every_call_fails_with_a_reason",
        None,
        || {
            assert_eq!(Device::num_devices(), Err(CudaError::NotInitialized));
            assert_eq!(cust::init(CudaFlags::empty()), Err(CudaError::NoDevice));
            assert!(cuda_loader::load().is_err_and(|error| error.reason.contains("libcuda.so.1")));
            assert_eq!(cust::quick_init().err(), Some(CudaError::NoDevice));
            let error = DeviceBuffer::from_slice(&[1.0_f32]).expect_err("there is no driver");
            assert_eq!(error, CudaError::NotInitialized);
            assert_eq!(
                error.to_string(),
                "the CUDA driver is not loaded or not initialised"
            );
            let stream = Stream::new(StreamFlags::DEFAULT, None);
            assert_eq!(stream.err(), Some(CudaError::NotInitialized));
        },
    );
}

/// This test program links cust, so its own file shows that cust does not require the driver
/// library.
#[test]
fn a_program_does_not_depend_on_the_driver_library() {
    let this = std::env::current_exe().expect("the path of this test");
    let bytes = std::fs::read(this).expect("this test's file");
    let needed = needed_libraries(&bytes).expect("an ELF file");
    assert!(
        needed.iter().any(|name| name.starts_with("libc.so")),
        "{needed:?}"
    );
    assert!(
        !needed.iter().any(|name| name.contains("libcuda")),
        "{needed:?}"
    );
}

fn needed_libraries(bytes: &[u8]) -> object::Result<Vec<String>> {
    let header = elf::FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let Some((entries, strings)) = sections.dynamic(endian, bytes)? else {
        return Ok(Vec::new());
    };
    let strings = sections.strings(endian, bytes, strings)?;
    let mut needed = Vec::new();
    for entry in entries {
        if entry.tag(endian) == elf::DT_NEEDED {
            let name = entry.string(endian, strings)?;
            needed.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(needed)
}

#[test]
fn devices_are_described() {
    alone("devices_are_described", Some(""), || {
        cust::init(CudaFlags::empty()).expect("there is a driver");
        let version = cust::CudaApiVersion::get().expect("a version");
        assert_eq!((version.major(), version.minor()), (12, 4));
        let devices: Vec<_> = Device::devices().expect("a number").collect();
        assert_eq!(devices.len(), 2);
        let device = devices[1].expect("device 1");
        assert_eq!(device.as_raw(), 1);
        assert_eq!(device.name().as_deref(), Ok("Fake GPU"));
        assert_eq!(device.total_memory(), Ok(64 * 1024));
        assert_eq!(device.get_attribute(DeviceAttribute::WarpSize), Ok(32));
        let unknown = device.get_attribute(DeviceAttribute::PciBusId);
        assert_eq!(unknown, Err(CudaError::InvalidValue));
    });
}

#[test]
fn codes_and_answers_that_cannot_be_are_errors() {
    alone(
        "codes_and_answers_that_cannot_be_are_errors",
        Some("cuDeviceGetCount=777 endless-name null-context"),
        || {
            cust::init(CudaFlags::empty()).expect("there is a driver");
            let newer = Device::num_devices().expect_err("a code of a newer driver");
            assert_eq!(newer.code(), 777);
            assert_eq!(
                newer.to_string(),
                "something that only newer drivers report"
            );
            let device = Device::get_device(0).expect("device 0");
            assert!(device.name().is_err_and(|error| error.code() > 1 << 30));
            assert!(Context::new(device).is_err_and(|error| error.code() > 1 << 30));
            let none = CurrentContext::get_device();
            assert_eq!(none.err(), Some(CudaError::InvalidContext));
        },
    );
}

#[test]
fn a_context_stays_as_long_as_something_lives_in_it() {
    alone(
        "a_context_stays_as_long_as_something_lives_in_it",
        Some(""),
        || {
            let context = ready();
            let again = Context::new(context.device()).expect("the same context");
            assert_eq!(again.as_raw(), context.as_raw());
            let buffer = [1_u32, 2, 3].as_dbuf().expect("a buffer");
            let locked = LockedBuffer::new(&7_u8, 10).expect("a buffer");
            noted();
            Context::drop(context).expect("given back");
            drop(again);
            assert_eq!(noted(), [""; 0], "two things live in it");

            // On a thread without a current context.
            let on_host = std::thread::spawn(move || {
                assert_eq!(
                    CurrentContext::get_device().err(),
                    Some(CudaError::InvalidContext)
                );
                assert_eq!(*locked, [7; 10]);
                drop(locked);
                buffer.len()
            });
            assert_eq!(on_host.join().expect("no panic"), 3);
            assert_eq!(
                noted(),
                [
                    "free host memory",
                    "free",
                    "release, 0 contexts on the stack"
                ]
            );
        },
    );
}

#[test]
fn contexts_of_ones_own_are_stacked() {
    alone("contexts_of_ones_own_are_stacked", Some(""), || {
        cust::init(CudaFlags::empty()).expect("there is a driver");
        let device = Device::get_device(1).expect("device 1");
        let context = legacy::Context::create_and_push(ContextFlags::SCHED_AUTO, device);
        let context = context.expect("a context");
        assert_eq!(CurrentContext::get_device(), Ok(device));
        let limit = CurrentContext::get_resource_limit(ResourceLimit::MallocHeapSize);
        assert_eq!(limit, Ok(1002));
        assert!(
            CurrentContext::get_cache_config().is_err(),
            "17 is no choice"
        );
        let range = CurrentContext::get_stream_priority_range().expect("a range");
        assert_eq!((range.least, range.greatest), (0, -5));
        let popped = legacy::ContextStack::pop().expect("what was pushed");
        assert_eq!(popped, context.get_unowned());
        let error = CurrentContext::synchronize().expect_err("no context is current");
        assert_eq!(error, CudaError::InvalidContext);
        legacy::ContextStack::push(&popped).expect("on top again");
        let boxed = UnifiedBox::new(5_u64).expect("a box");
        noted();
        drop(context);
        assert_eq!((*boxed, noted().len()), (5, 0), "the box lives in it");
        drop(boxed);
        assert_eq!(noted(), ["free", "destroy context"]);
    });
}

#[test]
fn what_is_copied_comes_back() {
    alone("what_is_copied_comes_back", Some(""), || {
        let _context = ready();
        let numbers: Vec<u32> = (0..10).collect();
        let mut buffer = numbers.as_slice().as_dbuf().expect("a buffer");
        assert_eq!((buffer.len(), GpuBuffer::len(&buffer)), (10, 10));
        assert_eq!(buffer.as_host_vec().as_deref(), Ok(numbers.as_slice()));

        let mut three = [0; 3];
        buffer.index(4..7).copy_to(&mut three).expect("a copy");
        assert_eq!(three, [4, 5, 6]);
        let (left, right) = buffer.split_at_mut(5);
        left.copy_from(&*right).expect("a copy on the device");
        assert_eq!(
            buffer.as_host_vec().as_deref(),
            Ok(&[5, 6, 7, 8, 9, 5, 6, 7, 8, 9][..])
        );
        buffer.index_mut(8..).set_32(77).expect("a fill");
        buffer.index_mut(..1).set_8(1).expect("a fill");
        buffer.index_mut(1..2).set_16(1).expect("a fill");
        let expected = [0x0101_0101, 0x1_0001, 7, 8, 9, 5, 6, 7, 77, 77];
        assert_eq!(buffer.as_host_vec().as_deref(), Ok(&expected[..]));

        let bytes = buffer.cast::<u8>();
        assert_eq!(bytes.len(), 40);
        let odd = bytes.try_cast::<[u8; 7]>();
        assert_eq!(odd.err(), Some(PodCastError::OutputSliceWouldHaveSlop));

        let mut zeros = DeviceBuffer::<u16>::zeroed(3).expect("zeros");
        assert!(zeros.set_32(0).is_err(), "six bytes are no whole words");
        assert_eq!(zeros.as_host_vec().as_deref(), Ok(&[0; 3][..]));

        let mut boxed = DeviceBox::new(&1.5_f64).expect("a box");
        boxed.copy_from(&2.5).expect("a copy");
        let other = DeviceBox::<f64>::zeroed().expect("a box");
        assert_eq!(
            (boxed.as_host_value(), other.as_host_value()),
            (Ok(2.5), Ok(0.0))
        );

        let mut variable = DeviceVariable::new(3_i32).expect("a variable");
        *variable = 4;
        variable.copy_htod().expect("a copy");
        *variable = 5;
        variable.copy_dtoh().expect("a copy");
        assert_eq!(*variable, 4);
    });
}

#[test]
fn copies_in_streams_come_back_too() {
    alone("copies_in_streams_come_back_too", Some(""), || {
        let _context = ready();
        let stream = Stream::new(StreamFlags::NON_BLOCKING, Some(-2)).expect("a stream");
        assert_eq!(stream.get_flags(), Ok(StreamFlags::DEFAULT));
        assert_eq!(stream.get_priority(), Ok(-2));
        let quick = Stream::new_non_blocking(None).expect("a stream");
        assert_eq!(quick.get_flags(), Ok(StreamFlags::NON_BLOCKING));

        let mut host = LockedBuffer::from_slice(&[1.0_f32, 2.0]).expect("locked memory");
        // SAFETY: nothing else uses either side until the stream is synchronised.
        unsafe {
            let mut device = DeviceBuffer::from_slice_async(&host, &stream).expect("a buffer");
            host.fill(0.0);
            device.async_copy_to(&mut host, &stream).expect("a copy");
            stream.synchronize().expect("done");
            assert_eq!(*host, [1.0, 2.0]);
            device.set_zero_async(&stream).expect("a fill");
            let mut boxed = DeviceBox::new_async(&9_u8, &stream).expect("a box");
            boxed.async_copy_from(&8, &stream).expect("a copy");
            assert_eq!(boxed.as_host_value(), Ok(8));
            noted();
            device.drop_async(&stream).expect("freed");
            boxed.drop_async(&stream).expect("freed");
        }
        assert_eq!(noted(), ["free in stream order"; 2]);
    });
}

#[test]
fn devices_copy_to_each_other() {
    alone("devices_copy_to_each_other", Some(""), || {
        let first = ready();
        let source = DeviceBuffer::from_slice(&[1_u32, 2, 3]).expect("a buffer");
        let second = Context::new(Device::get_device(1).expect("a device")).expect("a context");
        let target = DeviceBuffer::from_slice(&[0_u32; 3]).expect("a buffer");
        let stream = Stream::new(StreamFlags::DEFAULT, None).expect("a stream");
        let (to, from) = (target.as_device_ptr(), source.as_device_ptr());
        noted();
        // SAFETY: both sides have 12 bytes in these contexts, and nothing else uses them.
        unsafe {
            memory::memcpy_peer_async(to.as_raw(), &second, from.as_raw(), &first, 12, &stream)
                .expect("a copy");
        }
        stream.synchronize().expect("done");
        let noted = noted();
        assert!(
            matches!(&noted[..], [copy] if copy.starts_with("copy 12 bytes from context")),
            "{noted:?}"
        );
        assert_eq!(target.as_host_vec(), Ok(vec![1, 2, 3]));

        let event = Event::new(EventFlags::DISABLE_TIMING).expect("an event");
        let _first = first.enter().expect("the context");
        let elsewhere = Stream::new(StreamFlags::DEFAULT, None).expect("a stream");
        let refused = event.record(&elsewhere);
        assert_eq!(refused, Err(CudaError::InvalidHandle));
    });
}

#[test]
fn nothing_is_freed_twice() {
    alone("nothing_is_freed_twice", Some(""), || {
        let _context = ready();
        DeviceBuffer::drop([1_u8].as_dbuf().expect("a buffer")).expect("freed");
        DeviceBox::drop(1_u8.as_dbox().expect("a box")).expect("freed");
        LockedBuffer::drop(LockedBuffer::new(&1_u8, 3).expect("a buffer")).expect("freed");
        UnifiedBox::drop(UnifiedBox::new(1_u8).expect("a box")).expect("freed");
        assert_eq!(
            noted()
                .iter()
                .filter(|line| line.starts_with("free"))
                .count(),
            4
        );
        // A buffer without bytes has no memory.
        drop(DeviceBuffer::<u8>::zeroed(0).expect("nothing"));
        drop(LockedBuffer::<u64>::from_slice(&[]).expect("nothing"));
        assert_eq!(noted(), [""; 0]);
        // Memory whose ownership was given away is not freed.
        let pointer = DeviceBox::into_device(DeviceBox::new(&3_u8).expect("a box"));
        let raw = LockedBox::new(&4_u8).expect("a box").into_raw();
        assert_eq!(noted(), [""; 0]);
        // SAFETY: the caller has just received ownership of both.
        drop(unsafe { (DeviceBox::from_device(pointer), LockedBox::from_raw(raw)) });
        assert_eq!(noted(), ["free", "free host memory"]);
    });
}

#[test]
fn what_cannot_be_freed_is_given_back() {
    alone(
        "what_cannot_be_freed_is_given_back",
        Some("cuMemFree=777"),
        || {
            let _context = ready();
            let buffer = [1_u8, 2].as_dbuf().expect("a buffer");
            let (error, buffer) = DeviceBuffer::drop(buffer).expect_err("777");
            assert_eq!(error.code(), 777);
            assert_eq!(buffer.as_host_vec().as_deref(), Ok(&[1, 2][..]));
        },
    );
}

#[test]
fn memory_at_no_address_is_an_error() {
    alone(
        "memory_at_no_address_is_an_error",
        Some("null-memory"),
        || {
            let _context = ready();
            let device = DeviceBuffer::from_slice(&[1_u8]).map(drop);
            let shared = UnifiedBox::new(1_u8).map(drop);
            let locked = LockedBox::new(&1_u8).map(drop);
            for answer in [device, shared, locked] {
                let error = answer.expect_err("null");
                assert!(error.to_string().contains("cannot be right"), "{error}");
            }
        },
    );
}

#[test]
fn pools_keep_memory_at_hand() {
    alone("pools_keep_memory_at_hand", Some(""), || {
        let context = ready();
        let stream = Stream::new(StreamFlags::DEFAULT, None).expect("a stream");
        let pool = MemoryPool::new(context.device()).expect("a pool");
        pool.set_release_threshold(u64::MAX).expect("set");
        noted();
        // SAFETY: the memory is freed in the next line, and never used.
        unsafe {
            let memory = pool.allocate_async::<f32>(&stream, 10).expect("memory");
            memory::cuda_free_async(&stream, memory).expect("freed");
        }
        pool.trim_to(0).expect("trimmed");
        drop(pool);
        assert_eq!(
            noted(),
            [
                "free in stream order",
                "trim pool",
                "destroy pool, 0 allocations left"
            ]
        );
    });
}

#[test]
fn a_device_without_pools_says_so() {
    alone("a_device_without_pools_says_so", Some("no-pools"), || {
        let context = ready();
        let pool = MemoryPool::new(context.device());
        assert_eq!(pool.err(), Some(CudaError::NotSupported));
    });
}

#[test]
fn too_much_memory_is_an_error() {
    alone("too_much_memory_is_an_error", Some("small"), || {
        let _context = ready();
        let error = DeviceBuffer::<u8>::zeroed(1 << 20).expect_err("64 KiB are there");
        assert_eq!(error, CudaError::OutOfMemory);
        let error = DeviceBuffer::<u64>::zeroed(usize::MAX).expect_err("beyond all addresses");
        assert_eq!(error, CudaError::InvalidMemoryAllocation);
    });
}

#[test]
fn shared_memory_is_the_hosts_too() {
    alone("shared_memory_is_the_hosts_too", Some(""), || {
        let _context = ready();
        let stream = Stream::new(StreamFlags::DEFAULT, None).expect("a stream");
        let mut buffer = [1_i32, 2, 3].as_unified_buf().expect("a buffer");
        buffer[1] = -2;
        assert_eq!(*buffer, [1, -2, 3]);
        noted();
        buffer.prefetch_to_host(&stream).expect("moved");
        let device = CurrentContext::get_device().expect("a device");
        buffer.prefetch_to_device(&stream, &device).expect("moved");
        buffer.advise_read_mostly(true).expect("noted");
        buffer.preferred_location(None).expect("noted");
        assert_eq!(
            noted(),
            [
                "move 12 bytes to -1",
                "move 12 bytes to 0",
                "advice 1 for 12 bytes and 0",
                "advice 3 for 12 bytes and -1"
            ]
        );
        let five = UnifiedBox::new(5).expect("a box");
        assert!(five > UnifiedBox::new(4).expect("a box") && five.to_string() == "5");
    });
}

#[test]
fn kernels_are_launched() {
    alone("kernels_are_launched", Some(""), || {
        let _context = ready();
        let module = Module::from_ptx(PTX, &[]).expect("a module");
        let stream = Stream::new(StreamFlags::DEFAULT, None).expect("a stream");
        let values = [1.0_f32, 2.0, 3.0].as_dbuf().expect("a buffer");
        let double = module.get_function("double").expect("a kernel");
        noted();
        // SAFETY: the kernel takes an address and a length, and the buffer has that length.
        unsafe {
            launch!(double<<<2, (32, 4), 0, stream>>>(values.as_device_ptr(), values.len()))
                .expect("launched");
            // The compiler leaves a value without bytes out of the entry point.
            let nothing = PhantomData::<u64>;
            launch!(module.double<<<1, 32, 0, stream>>>(
                values.as_device_ptr(),
                nothing,
                values.len(),
            ))
            .expect("launched");
            let missing = launch!(module.triple<<<1, 32, 0, stream>>>(1_u32));
            assert_eq!(missing, Err(CudaError::NotFound));
        }
        stream.synchronize().expect("done");
        assert_eq!(values.as_host_vec().as_deref(), Ok(&[4.0, 8.0, 12.0][..]));
        assert_eq!(
            noted(),
            [
                "launch double grid 2 1 1 block 32 4",
                "find double",
                "launch double grid 1 1 1 block 32 1"
            ]
        );
        assert_eq!(
            double.suggested_launch_configuration(3, 64.into()),
            Ok((10, 64))
        );
        let blocks = double.max_active_blocks_per_multiprocessor((32, 2).into(), 5);
        assert_eq!(blocks, Ok(64_005));
        let all = u32::MAX;
        let beyond = double.max_active_blocks_per_multiprocessor((all, all, all).into(), 0);
        assert_eq!(beyond, Err(CudaError::InvalidValue));
    });
}

#[test]
fn modules_say_why_they_are_refused() {
    alone("modules_say_why_they_are_refused", Some(""), || {
        let _context = ready();
        let refused = Module::compile(c"nonsense", &[]).expect_err("no PTX");
        assert_eq!(refused.error, CudaError::InvalidPtx);
        assert!(
            refused.to_string().contains("Missing .version"),
            "{refused}"
        );
        let cut_off = Module::from_cubin(b"\x7fELF\x02\x01", &[]);
        assert_eq!(cut_off.err(), Some(CudaError::InvalidImage));
        let text = Module::from_ptx("zero \0 byte", &[]);
        assert_eq!(text.err(), Some(CudaError::InvalidPtx));
        let file = Module::from_file("no/such/file");
        assert_eq!(file.err(), Some(CudaError::FileNotFound));

        let module = Module::from_str(PTX).expect("a module");
        let mut symbol = module
            .get_global::<[f32; 4]>(c"FAKE_CONSTANT")
            .expect("a global");
        symbol.copy_from(&[1.0, 2.0, 3.0, 4.0]).expect("a copy");
        let mut value = [0.0; 4];
        symbol.copy_to(&mut value).expect("a copy");
        assert_eq!(value, [1.0, 2.0, 3.0, 4.0]);
        let larger = module.get_global::<[f64; 4]>(c"FAKE_CONSTANT");
        assert_eq!(larger.err(), Some(CudaError::InvalidValue));
        noted();
        Module::drop(module).expect("unloaded");
        assert_eq!(noted(), ["unload module 0"]);
    });
}

#[test]
fn events_are_between_work() {
    alone("events_are_between_work", Some(""), || {
        let _context = ready();
        let stream = Stream::new(StreamFlags::DEFAULT, None).expect("a stream");
        let start = Event::new(EventFlags::DEFAULT).expect("an event");
        let end = Event::new(EventFlags::BLOCKING_SYNC).expect("an event");
        start.record(&stream).expect("recorded");
        end.record(&stream).expect("recorded");
        end.synchronize().expect("over");
        assert_eq!(end.query(), Ok(EventStatus::Ready));
        assert_eq!(end.elapsed_time_f32(&start), Ok(1.0));
        assert_eq!(end.elapsed(&start), Ok(std::time::Duration::from_millis(1)));
        assert_eq!(start.elapsed(&end), Err(CudaError::InvalidValue));
        noted();
        stream
            .wait_event(&start, StreamWaitEventFlags::DEFAULT)
            .expect("waits");
        stream
            .wait_event(end, StreamWaitEventFlags::DEFAULT)
            .expect("waits");
        assert_eq!(noted(), ["wait for event 1", "wait for event 2"]);
        assert_eq!(stream.query(), Ok(true));
    });
}

#[test]
fn work_that_goes_on_is_no_error() {
    alone("work_that_goes_on_is_no_error", Some("busy"), || {
        let _context = ready();
        let stream = Stream::new(StreamFlags::DEFAULT, None).expect("a stream");
        let event = Event::new(EventFlags::DEFAULT).expect("an event");
        assert_eq!(
            (stream.query(), event.query()),
            (Ok(false), Ok(EventStatus::NotReady))
        );
    });
}

static CALLS: AtomicU32 = AtomicU32::new(0);

/// Counts its drops.
struct Dropped;

impl Drop for Dropped {
    fn drop(&mut self) {
        CALLS.fetch_add(100, Ordering::Relaxed);
    }
}

#[test]
fn the_host_is_called_behind_work() {
    alone("the_host_is_called_behind_work", Some(""), || {
        let _context = ready();
        let stream = Stream::new(StreamFlags::DEFAULT, None).expect("a stream");
        let held = Dropped;
        let call = Box::new(move || {
            let _held = held;
            CALLS.fetch_add(1, Ordering::Relaxed);
        });
        stream.add_callback(call).expect("called");
        assert_eq!(CALLS.load(Ordering::Relaxed), 101);
        stream
            .add_callback(Box::new(|| panic!("on purpose")))
            .expect("called");
        stream.synchronize().expect("the stream goes on");
    });
}

#[test]
fn a_call_that_is_refused_is_dropped() {
    alone(
        "a_call_that_is_refused_is_dropped",
        Some("cuLaunchHostFunc=777"),
        || {
            let _context = ready();
            let stream = Stream::new(StreamFlags::DEFAULT, None).expect("a stream");
            let held = Dropped;
            let refused = stream.add_callback(Box::new(move || drop(held)));
            assert_eq!(refused.map_err(CudaError::code), Err(777));
            assert_eq!(CALLS.load(Ordering::Relaxed), 100);
        },
    );
}

#[test]
fn graphs_are_drawn_or_captured() {
    alone("graphs_are_drawn_or_captured", Some(""), || {
        let _context = ready();
        let module = Module::from_ptx(PTX, &[]).expect("a module");
        let double = module.get_function("double").expect("a kernel");
        let stream = Stream::new(StreamFlags::DEFAULT, None).expect("a stream");
        let values = [1.0_f32, 2.0].as_dbuf().expect("a buffer");

        let mut graph = Graph::new(GraphCreationFlags::empty()).expect("a graph");
        // SAFETY: the buffer outlives the runs of the graph, and has that many values.
        let launch = || unsafe {
            kernel_invocation!(double<<<1, 32, 0>>>(values.as_device_ptr(), values.len()))
        };
        let first = graph.add_kernel_node(launch(), []).expect("a node");
        let second = graph.add_kernel_node(launch(), [first]).expect("a node");
        assert_eq!(graph.nodes().as_deref(), Ok(&[first, second][..]));
        assert_eq!(graph.edges().as_deref(), Ok(&[(first, second)][..]));
        assert_eq!(graph.node_type(second), Ok(GraphNodeType::KernelInvocation));
        let mut other = Graph::new(GraphCreationFlags::empty()).expect("a graph");
        let foreign = other.add_kernel_node(launch(), [first]);
        assert_eq!(foreign, Err(CudaError::InvalidHandle));

        let run = graph.instantiate().expect("ready to run");
        drop(graph);
        // SAFETY: as above.
        unsafe { run.launch(&stream) }.expect("queued");
        assert_eq!(values.as_host_vec().as_deref(), Ok(&[4.0, 8.0][..]));

        stream
            .begin_capture(CaptureMode::ThreadLocal)
            .expect("noted from here");
        // SAFETY: as above.
        unsafe { launch!(double<<<1, 32, 0, stream>>>(values.as_device_ptr(), values.len())) }
            .expect("noted");
        let captured = stream.end_capture().expect("a graph");
        assert_eq!(
            values.as_host_vec().as_deref(),
            Ok(&[4.0, 8.0][..]),
            "only noted"
        );
        let run = captured.instantiate().expect("ready to run");
        // SAFETY: as above.
        unsafe { run.launch(&stream) }.expect("queued");
        assert_eq!(values.as_host_vec().as_deref(), Ok(&[8.0, 16.0][..]));
    });
}

#[test]
fn code_is_linked() {
    alone("code_is_linked", Some(""), || {
        let _context = ready();
        let mut linker = Linker::new().expect("a linker");
        linker.add_ptx("first").expect("added");
        linker.add_cubin(b"second").expect("added");
        assert_eq!(linker.complete().as_deref(), Ok(&b"first\0second"[..]));
        assert_eq!(noted().last().map(String::as_str), Some("destroy link"));
    });
}

#[test]
fn textures_and_surfaces_own_their_arrays() {
    alone("textures_and_surfaces_own_their_arrays", Some(""), || {
        let _context = ready();
        let numbers = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let texture = numbers.as_2d_texture(3, 2).expect("a texture");
        assert_eq!(texture.handle(), 0x7A);
        let array = texture.into_array().expect("destroyed").expect("its array");
        assert_eq!(array.as_host_vec::<f32>().as_deref(), Ok(&numbers[..]));
        let noted_so_far = noted();
        assert!(noted_so_far.contains(&"array of 24 bytes, flags 2".to_owned()));
        assert_eq!(
            noted_so_far.last().map(String::as_str),
            Some("destroy texture 0x7a")
        );
        drop(Surface::from_array(array).expect("a surface"));
        assert_eq!(noted(), ["destroy surface 0x5f", "destroy array"]);

        let mut deep = ArrayObject::new([2, 3, 4], ArrayFormat::U8, 2).expect("an array");
        let bytes: Vec<u8> = (0..48).collect();
        deep.copy_from(&bytes).expect("a copy");
        assert_eq!(deep.as_host_vec::<u8>(), Ok(bytes));
        let wrong = ArrayObject::new_1d(0, ArrayFormat::F32, 1);
        assert_eq!(wrong.err(), Some(CudaError::InvalidValue));
        drop(Texture::from_array(deep).expect("a texture"));
    });
}
