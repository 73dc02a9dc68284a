//! Every kernel of the table, on every device that runs kernels: right results at ragged
//! sizes, inputs left alone, the geometry of the table and no other, and wrong arguments
//! refused before anything runs.
//!
//! Nothing here names a kernel or a family. What a family promises beyond that (its
//! physics, its orders, its own errors) has a suite of the family's name.

use halo_gpu::case::{Case, Entry, Memory, Problem, SUBJECTS, Values, registry, subject};
use halo_gpu::device::Blocks;
use halo_gpu::{Device, Dim3, EmulatorOptions, Error, LaunchAxis, LaunchConfig, Limits};
use halo_tests::{for_each, for_each_in_parallel, kernel_devices, ptx, rng, test_cases, verify};
use rand::RngExt;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// All uses of a kernel, with fresh random data.
fn cases(entry: &Entry, problem: &Problem) -> Vec<Case> {
    let mut rng = rng();
    let mut random = || rng.random_range(-1.0..1.0);
    subject(entry)
        .expect("a subject for every family")
        .cases(entry, problem, &mut random)
        .unwrap()
}

fn upload(values: &[Box<dyn Values>], device: &Device) -> Vec<Box<dyn Memory>> {
    values
        .iter()
        .map(|values| values.upload(device).unwrap())
        .collect()
}

/// Fails unless the buffers hold these values, bit for bit.
fn assert_untouched(values: &[Box<dyn Values>], memory: &[Box<dyn Memory>], what: &str) {
    for (number, (values, memory)) in values.iter().zip(memory).enumerate() {
        let difference = values.first_difference(memory.as_ref()).unwrap();
        assert_eq!(difference, None, "{what} {number} was changed");
    }
}

/// Runs `check` for every kernel, or for the one that `HALO_TEST_KERNEL` names, and fails
/// where there is none.
fn for_each_kernel(what: &str, check: impl Fn(&'static Entry) + Sync) {
    let kernel = std::env::var("HALO_TEST_KERNEL").ok();
    let wanted = |entry: &&Entry| kernel.as_ref().is_none_or(|only| only == entry.name);
    let names: Vec<_> = (registry::entries().filter(wanted))
        .map(|entry| entry.name)
        .collect();
    for_each_in_parallel(what, names, |name| check(registry::entry(name).unwrap()));
}

/// The devices that run this kernel. The first is an emulator that schedules blocks as the kernel
/// needs. It verifies its launches if `verify` is set, and otherwise runs them once.
fn devices(entry: &Entry, verify: bool) -> Vec<Device> {
    let mut devices = kernel_devices();
    devices[0] = Device::emulator_with(EmulatorOptions {
        verify,
        ..options(entry)
    });
    devices
}

/// The emulator for this kernel's blocks.
fn options(entry: &Entry) -> EmulatorOptions {
    let mut options = EmulatorOptions::default();
    if subject(entry).unwrap().waits_for_blocks(entry) {
        options.blocks = Blocks::Resident;
    }
    options
}

/// The first problem for which the kernel has several blocks; if there is none, the last problem.
fn typical(entry: &Entry) -> Problem {
    let problems = subject(entry).unwrap().problems(entry);
    let several = |problem: &&Problem| entry.geometry(problem).unwrap().grid[0] > 1;
    let first = problems.iter().find(several).or(problems.last());
    *first.expect("problems for every kernel")
}

#[test]
fn every_family_has_a_subject_and_every_subject_a_family() {
    let families: BTreeSet<_> = registry::FAMILIES
        .iter()
        .map(|family| family.name)
        .collect();
    let subjects: BTreeSet<_> = SUBJECTS.iter().map(|subject| subject.family()).collect();
    assert_eq!(families, subjects);
}

#[test]
fn names_say_family_variant_and_type() {
    let seen = Mutex::new(BTreeSet::new());
    for_each_kernel("names", |entry| {
        assert!(
            seen.lock().unwrap().insert(entry.name),
            "twice in the table"
        );
        let short = format!("{}_{}", entry.family, entry.variant);
        let long = format!("{short}_{}", entry.scalar);
        assert!(entry.name == short || entry.name == long, "{short}");
        assert!(!entry.computes.is_empty());
        assert!(
            entry
                .file
                .starts_with(&format!("gpu-kernels/src/{}/", entry.family)),
            "{}",
            entry.file
        );
    });
}

#[test]
fn the_committed_ptx_has_the_kernels_of_the_table_and_no_others() {
    let table: BTreeSet<_> = registry::entries().map(|entry| entry.name).collect();
    for_each("targets", ptx::TARGETS, |target| {
        let entries: BTreeSet<_> = ptx::text(target)
            .lines()
            .filter_map(|line| line.split(".visible .entry ").nth(1))
            .filter_map(|rest| rest.split('(').next())
            .collect();
        assert_eq!(entries, table);
    });
}

/// Runs the problems of the kernel's family on every device. If all cases run, the emulator
/// verifies all launches; otherwise it verifies those of one problem.
#[test]
fn every_kernel_gives_what_its_family_promises() {
    for_each_kernel("kernels", |entry| {
        let problems = subject(entry).unwrap().problems(entry);
        if test_cases::all() {
            for device in devices(entry, verify()) {
                for_each(entry.name, &problems, |problem| {
                    promised(entry, problem, &device)
                });
            }
            return;
        }
        for device in devices(entry, false) {
            let problems = test_cases::one_in(5, &problems);
            for_each(entry.name, problems, |problem| {
                promised(entry, problem, &device)
            });
        }
        promised(entry, &typical(entry), &devices(entry, verify())[0]);
    });
}

/// Runs all uses of the kernel for this problem. They must give what the family promises, and leave
/// the inputs unchanged.
fn promised(entry: &Entry, problem: &Problem, device: &Device) {
    let cases = cases(entry, problem);
    assert!(!cases.is_empty());
    for case in cases {
        let inputs = upload(&case.inputs, device);
        let mut outputs = upload(&case.outputs, device);
        (case.launch)(&inputs, &mut outputs).unwrap();
        let verdict = case.expected.check(&outputs).unwrap();
        verdict.unwrap_or_else(|why| panic!("{why}"));
        assert_untouched(&case.inputs, &inputs, "input");
    }
}

#[test]
fn a_launch_has_the_geometry_of_the_table() {
    for_each_kernel("geometry", |entry| {
        let example = entry.geometry(&entry.example).unwrap();
        LaunchConfig::from(example)
            .check(entry.name, &Limits::SM_90)
            .unwrap();
        assert!(entry.cost(&entry.example).bytes > 0 || entry.cost(&entry.example).flops > 0);

        let problem = typical(entry);
        let [blocks, ..] = entry.geometry(&problem).unwrap().grid;
        assert!(blocks > 1, "{problem:?} is one block, which shows little");
        // A device with just enough blocks runs it, and one block less is refused.
        let limited = |case: &Case, blocks: u32| {
            let mut limits = Limits::SM_90;
            limits.grid = Dim3::new(blocks, limits.grid.y, limits.grid.z);
            let device = Device::emulator_with(EmulatorOptions {
                limits,
                ..options(entry)
            });
            let inputs = upload(&case.inputs, &device);
            let mut outputs = upload(&case.outputs, &device);
            let outcome = (case.launch)(&inputs, &mut outputs);
            if outcome.is_err() {
                assert_untouched(&case.outputs, &outputs, "output");
            }
            outcome
        };
        for case in cases(entry, &problem) {
            limited(&case, blocks).unwrap();
            let error = limited(&case, blocks - 1).unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::LaunchLimit { kernel, axis: LaunchAxis::GridX, given, .. }
                        if kernel == entry.name && given == u64::from(blocks)
                ),
                "{error}"
            );
        }
    });
}

#[test]
fn buffers_that_do_not_fit_are_refused_before_anything_runs() {
    for_each_kernel("kernels", |entry| {
        for device in devices(entry, verify() && test_cases::all()) {
            for case in cases(entry, &typical(entry)) {
                for number in 0..case.inputs.len() + case.outputs.len() {
                    refuses_others_for(entry, &case, number, &device);
                }
            }
        }
    });
}

/// Launches with another buffer for this argument: one that is too short; then, one on
/// another device than the others.
fn refuses_others_for(entry: &Entry, case: &Case, number: usize, device: &Device) {
    let elsewhere = Device::cpu();
    let arguments = case.inputs.len() + case.outputs.len();
    for other in [None, Some(&elsewhere)].into_iter().take(arguments) {
        let mut inputs = upload(&case.inputs, device);
        let mut outputs = upload(&case.outputs, device);
        let (values, memory) = match number.checked_sub(inputs.len()) {
            None => (&case.inputs[number], &mut inputs[number]),
            Some(output) => (&case.outputs[output], &mut outputs[output]),
        };
        *memory = match other {
            None => values.shortened().upload(device).unwrap(),
            Some(other) => values.upload(other).unwrap(),
        };
        let outcome = (case.launch)(&inputs, &mut outputs);
        if other.is_none() && subject(entry).unwrap().takes_any_length(entry, number) {
            outcome.unwrap();
            continue;
        }
        let error = outcome.unwrap_err();
        let refused = match other {
            None => matches!(
                error,
                Error::LengthMismatch { .. } | Error::ShapeMismatch { .. }
            ),
            Some(_) => matches!(error, Error::DeviceMismatch { .. }),
        };
        assert!(refused, "argument {number}: {error}");
        if other.is_some() {
            assert_untouched(&case.outputs, &outputs, "output");
        }
    }
}

#[test]
fn the_cpu_launches_no_kernel() {
    let device = Device::cpu();
    for_each_kernel("kernels on the CPU", |entry| {
        for case in cases(entry, &typical(entry)) {
            let inputs = upload(&case.inputs, &device);
            let mut outputs = upload(&case.outputs, &device);
            match (case.launch)(&inputs, &mut outputs) {
                Err(Error::NotLaunchable { kernel }) => assert_eq!(kernel, entry.name),
                Err(other) => panic!("{other}"),
                // Where the family picks the kernel, it picks the port on the CPU.
                Ok(()) => case.expected.check(&outputs).unwrap().unwrap(),
            }
        }
    });
}
