//! Messages between ranks, and what becomes of ranks that fail.

use crate::ways::{EMULATOR, a_failure_leaves_no_messages, ways};
use halo_distributed::{
    Communicator, Decomposition, Error, Expected, Ghosted, Incoming, Outgoing, Parcel, heat2d,
    nbody, run,
};
use halo_gpu::heat2d::Heat2d;
use halo_gpu::nbody::Gravity;
use halo_gpu::{Device, Element, Shape2};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const RANKS: [usize; 5] = [1, 2, 3, 4, 7];

#[test]
fn everybody_learns_what_everybody_gives() {
    for ranks in RANKS {
        let all = run(ranks, |communicator| {
            let rank = communicator.rank();
            let lists = communicator.all_gather(&vec![rank as u32; rank])?;
            let largest = communicator.all_reduce(rank as i64 - 3, i64::max)?;
            communicator.barrier()?;
            Ok((lists, largest))
        });
        let right: Vec<_> = (0..ranks).map(|rank| vec![rank as u32; rank]).collect();
        for (lists, largest) in all.expect("no rank fails") {
            assert_eq!(lists, right);
            assert_eq!(largest, ranks as i64 - 4);
        }
    }
}

#[test]
fn a_failure_during_an_exchange_leaves_no_messages() {
    for way in [ways(), vec![EMULATOR]].concat() {
        let done = way.run(2, a_failure_leaves_no_messages);
        assert!(done.is_ok(), "{}: {done:?}", way.name);
    }
}

/// As between processes, in the test of this name in `mpi.rs`.
#[test]
fn exchanges_that_are_under_way_at_once_are_told_apart() {
    for way in [ways(), vec![EMULATOR]].concat() {
        let found = way.run(2, |communicator, device| {
            let peer = 1 - communicator.rank();
            let begun = [3, 5, 7].map(|bytes| {
                let outgoing = Parcel {
                    to: peer,
                    tag: 0,
                    bytes: device.alloc_filled(bytes, bytes as u8)?.into(),
                };
                let incoming = Expected {
                    from: peer,
                    tag: 0,
                    room: device.zeros(bytes)?.into(),
                };
                communicator.begin(device, vec![outgoing], vec![incoming])
            });
            // One is given up.
            let [first, given_up, third] = begun;
            drop(given_up?);
            let (first, third) = match communicator.rank() {
                0 => {
                    let third = third?()?;
                    (first?()?, third)
                }
                _ => (first?()?, third?()?),
            };
            let [first, third] = [first, third].map(|mut it| it.messages.remove(0).into_vec());
            Ok((first?, third?))
        });
        for found in found.expect("no rank fails") {
            assert_eq!(found, (vec![3; 3], vec![7; 7]), "{}", way.name);
        }
    }
}

/// Two ranks send each other two messages each, received in the other order.
#[test]
fn tags_keep_messages_apart() {
    let received = run(2, |communicator| {
        let (rank, peer) = (communicator.rank() as u8, 1 - communicator.rank());
        let (mut up, mut down) = ([0], [0]);
        communicator.exchange(
            &[
                Outgoing {
                    to: peer,
                    tag: 0,
                    bytes: &[10 * rank],
                },
                Outgoing {
                    to: peer,
                    tag: 1,
                    bytes: &[10 * rank + 1],
                },
            ],
            &mut [
                Incoming {
                    from: peer,
                    tag: 1,
                    bytes: &mut up,
                },
                Incoming {
                    from: peer,
                    tag: 0,
                    bytes: &mut down,
                },
            ],
        )?;
        Ok((up[0], down[0]))
    });
    assert_eq!(received.expect("no rank fails"), [(11, 10), (1, 0)]);
}

#[test]
fn a_rank_that_hangs_is_an_error_in_time() {
    let failed = AtomicUsize::new(0);
    let waits = run(3, |communicator| {
        if communicator.rank() == 1 {
            // There, and silent, until both others have given up.
            while failed.load(Ordering::Relaxed) < 2 {
                std::thread::sleep(Duration::from_millis(5));
            }
            return Ok(None);
        }
        let communicator = communicator.with_deadline(Duration::from_millis(50));
        let start = Instant::now();
        let error = communicator.barrier().expect_err("rank 1 never comes");
        failed.fetch_add(1, Ordering::Relaxed);
        Ok(Some((start.elapsed(), error)))
    });
    let waits: Vec<_> = waits
        .expect("the ranks end")
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(waits.len(), 2);
    for (waited, error) in waits {
        // The first of them to give up may be gone for the other.
        assert!(
            matches!(error, Error::Deadline { peer: 1, .. }) && waited >= Duration::from_millis(50)
                || matches!(error, Error::Gone { .. }),
            "{error} after {waited:?}"
        );
    }
}

#[test]
fn a_rank_that_panics_or_fails_is_an_error_everywhere() {
    let start = Instant::now();
    let panicked = run(4, |communicator| {
        assert_ne!(communicator.rank(), 2, "as it was told");
        communicator.barrier()
    });
    let panicked = panicked.expect_err("rank 2 panics");
    assert!(
        matches!(&panicked, Error::Panicked { rank: 2, message } if message.contains("told")),
        "{panicked}"
    );

    let refused = run(4, |communicator| {
        if communicator.rank() == 3 {
            Heat2d::dirichlet(Shape2::new(1, 1))?;
        }
        communicator.barrier()
    });
    let refused = refused.expect_err("rank 3 fails");
    assert!(matches!(refused, Error::Device(_)), "{refused}");
    assert!(start.elapsed() < Duration::from_secs(30));

    let gone = run(2, |communicator| match communicator.rank() {
        0 => Ok(()),
        _ => communicator.barrier(),
    });
    let gone = gone.expect_err("rank 0 has left");
    assert!(matches!(gone, Error::Gone { rank: 1, peer: 0 }), "{gone}");
}

#[test]
fn messages_have_the_length_that_is_expected() {
    let short = run(2, |communicator| {
        let peer = 1 - communicator.rank();
        let mut room = [0; 3];
        communicator.exchange(
            &[Outgoing {
                to: peer,
                tag: 0,
                bytes: &[7; 4][..3 + peer],
            }],
            &mut [Incoming {
                from: peer,
                tag: 0,
                bytes: &mut room,
            }],
        )
    });
    let short = short.expect_err("one byte too many");
    assert!(
        matches!(
            short,
            Error::MessageLength {
                rank: 1,
                peer: 0,
                required: 3,
                given: 4
            }
        ),
        "{short}"
    );
    let device = Device::cpu();
    for (given, required) in [(3, 4), (5, 4)] {
        let refused = run(2, |communicator| {
            let (rank, peer) = (communicator.rank(), 1 - communicator.rank());
            let parcel = Parcel {
                to: peer,
                tag: 0,
                bytes: device
                    .zeros(if rank == 0 { given } else { required })?
                    .into(),
            };
            let expected = Expected {
                from: peer,
                tag: 0,
                room: device.zeros(required)?.into(),
            };
            communicator.begin(&device, vec![parcel], vec![expected])?().map(drop)
        });
        let refused = refused.expect_err("another length");
        assert!(
            matches!(refused, Error::MessageLength { rank: 1, peer: 0, required: r, given: g }
                if (r, g) == (required, given)),
            "{refused}"
        );
    }
    let alone = Communicator::alone();
    let nobody = Outgoing {
        to: 1,
        tag: 0,
        bytes: &[],
    };
    let nobody = alone.exchange(&[nobody], &mut []);
    let nobody = nobody.expect_err("there is one rank");
    assert!(
        matches!(nobody, Error::NoSuchRank { given: 1, ranks: 1 }),
        "{nobody}"
    );
    assert!(matches!(
        Communicator::threads(0),
        Err(Error::InvalidParameter { .. })
    ));
}

#[test]
fn ranks_that_were_given_different_things_learn_it() {
    let differs = run(3, |communicator| {
        let width = if communicator.rank() == 1 { 4 } else { 2 };
        let error = communicator.agree("the width", &width);
        Ok(error.expect_err("rank 1 differs"))
    });
    for (rank, error) in differs.expect("all learn it").into_iter().enumerate() {
        let right = if rank == 1 { 0 } else { 1 };
        assert!(
            matches!(error, Error::Disagreement { what: "the width", peer, .. } if peer == right),
            "{error}"
        );
    }
}

/// Ranks whose fields differ in shape, type, way of cutting or ghosts, or whose plates and bodies do:
/// all learn what differs, before anything is sent.
#[test]
fn ranks_with_different_fields_learn_it() {
    fn field<T: Element + Default>(
        communicator: &Communicator,
        points: [usize; 2],
        parts: [usize; 2],
        width: usize,
    ) -> Result<(), Error> {
        let cut = Decomposition::new(points, parts)?;
        Ghosted::new(communicator, &Device::cpu(), cut, width, |_| T::default()).map(drop)
    }
    fn plate(communicator: &Communicator, n: usize, k: usize) -> Result<(), Error> {
        let heat = Heat2d::dirichlet(Shape2::new(8, n))?;
        let rows = Decomposition::slabs([8, n], 3)?;
        heat2d::Plate::new(communicator, &Device::cpu(), heat, rows, k, |_| 0.0_f32).map(drop)
    }
    fn bodies(communicator: &Communicator, n: usize, parts: u32) -> Result<(), Error> {
        let gravity = Gravity::new(0.1)?.with_parts(parts)?;
        nbody::Plan::<f32>::new(communicator, &Device::cpu(), gravity, n).map(drop)
    }
    // What rank 1 does in its own way, and what all call it.
    type Work = fn(&Communicator, bool) -> Result<(), Error>;
    let cases: [(&str, Work); 8] = [
        ("the decomposition", |it, own| {
            field::<f32>(it, [8, if own { 9 } else { 12 }], [1, 3], 1)
        }),
        ("the decomposition", |it, own| {
            field::<f32>(it, [9, 9], if own { [3, 1] } else { [1, 3] }, 1)
        }),
        ("the type of the elements", |it, own| match own {
            true => field::<f64>(it, [9, 9], [1, 3], 1),
            false => field::<f32>(it, [9, 9], [1, 3], 1),
        }),
        ("the width of the ghosts", |it, own| {
            field::<f32>(it, [9, 9], [1, 3], if own { 2 } else { 1 })
        }),
        ("the plate", |it, own| {
            plate(it, if own { 30 } else { 33 }, 2)
        }),
        ("the width of the ghosts", |it, own| {
            plate(it, 30, if own { 2 } else { 4 })
        }),
        ("the bodies", |it, own| {
            bodies(it, if own { 1000 } else { 1024 }, 4)
        }),
        ("the bodies", |it, own| {
            bodies(it, 1024, if own { 3 } else { 4 })
        }),
    ];
    for (what, work) in cases {
        let errors = run(3, |communicator| {
            let done = work(&communicator, communicator.rank() == 1);
            Ok(done.expect_err("rank 1 differs"))
        });
        for (rank, error) in errors.expect("all learn it").into_iter().enumerate() {
            let right = if rank == 1 { 0 } else { 1 };
            assert!(
                matches!(&error, Error::Disagreement { what: it, peer, .. }
                    if *it == what && *peer == right),
                "{what}, rank {rank}: {error}"
            );
        }
    }
}

/// One rank alone has no memory for what it is to have.
#[test]
fn a_rank_without_memory_is_an_error_everywhere() {
    let errors = run(3, |communicator| {
        let own = if communicator.rank() == 1 {
            Device::cpu().zeros::<f64>(usize::MAX / 16).map(drop)
        } else {
            Ok(())
        };
        let done = communicator.together(own.map_err(Error::from));
        Ok(done.expect_err("rank 1 has no memory"))
    });
    for (rank, error) in errors.expect("all learn it").into_iter().enumerate() {
        let is_right = match &error {
            Error::Device(_) => rank == 1,
            Error::Elsewhere {
                peer: 1, message, ..
            } => rank != 1 && message.contains("memory"),
            _ => false,
        };
        assert!(is_right, "rank {rank}: {error}");
    }
}

/// More than any computer's addresses: refused by type, not by the end of the process.
#[test]
fn fields_that_no_memory_holds_are_refused() {
    let points = [1 << 60];
    let errors = run(2, |communicator| {
        let cut = Decomposition::slabs(points, 2)?;
        let field = Ghosted::new(&communicator, &Device::cpu(), cut, 1, |_| 0.0_f32);
        let values = cut.values(communicator.rank(), |_| 0.0_f32);
        Ok([field.map(drop), values.map(drop)].map(|it| it.expect_err("too many points")))
    });
    for error in errors.expect("all learn it").iter().flatten() {
        assert!(
            matches!(
                error,
                Error::Device(halo_gpu::Error::HostOutOfMemory { .. })
            ),
            "{error}"
        );
    }
}

/// A launcher starts several ranks of a program without MPI: none of them may run as if it were
/// alone.
#[cfg(not(feature = "mpi"))]
#[test]
fn launched_without_mpi_is_found_out() {
    const CASE: &str = "HALO_LAUNCHED_CASE";
    let name = "ranks::launched_without_mpi_is_found_out";
    if std::env::var_os(CASE).is_some() {
        match Communicator::from_launcher() {
            Ok(communicator) => println!("{} rank", communicator.size()),
            Err(error) => println!("{error}"),
        }
        return;
    }
    for (variables, words) in [
        (&[][..], "1 rank"),
        (
            &[("PMI_SIZE", "1"), ("SLURM_STEP_NUM_TASKS", "2")],
            "1 rank",
        ),
        (
            &[("OMPI_COMM_WORLD_SIZE", "4")],
            "OMPI_COMM_WORLD_SIZE says 4 ranks",
        ),
        (&[("PMI_SIZE", "3")], "PMI_SIZE says 3 ranks"),
        (
            &[("SLURM_STEP_NUM_TASKS", "8")],
            "SLURM_STEP_NUM_TASKS says 8 ranks",
        ),
    ] {
        let output = std::process::Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", name, "--nocapture"])
            .env(CASE, "")
            .envs(variables.iter().copied())
            .output()
            .expect("this test");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(words), "{variables:?}: {text}");
    }
}
