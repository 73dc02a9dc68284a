//! What the suites run on: devices, one for each rank, and the way of their messages.

use halo_distributed::{Ahead, Communicator, Decomposition, Error, Ghosted, run};
use halo_gpu::{Device, DeviceKind, Scalar, test_cases};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Devices, and how their ranks reach each other.
#[derive(Clone)]
pub struct Way {
    pub name: &'static str,
    /// The device of a rank.
    device: fn(usize) -> Device,
    connect: fn(Communicator, &Device) -> Result<Communicator, Error>,
    /// The most ranks that it takes.
    most: fn() -> usize,
}

pub const CPU: Way = Way {
    name: "cpu",
    device: |_| Device::cpu(),
    connect: |communicator, _| Ok(communicator),
    most: || usize::MAX,
};

/// The same, where what neighbours need is computed first, and sent while the rest is.
pub const AHEAD: Way = Way {
    name: "cpu, rims ahead",
    connect: |communicator, _| Ok(communicator.with_rims(Ahead::Always)),
    ..CPU
};

pub const EMULATOR: Way = Way {
    name: "emulator",
    device: |_| Device::emulator(),
    ..CPU
};

/// A CUDA device for each rank, as far as there are: the next ranks share them, each with a
/// stream of its own. Messages are copied from device to device.
#[cfg(feature = "gpu")]
pub const CUDA: Way = Way {
    name: "cuda",
    device: |rank| {
        static OPENED: OnceLock<Vec<Device>> = OnceLock::new();
        let opened = OPENED.get_or_init(|| {
            let count = cuda_count();
            let open = |rank: usize| Device::cuda(rank % count);
            let opened = (0..8).map(open).collect::<Result<_, _>>();
            opened.unwrap_or_else(|error| panic!("a CUDA device cannot be used: {error}"))
        });
        opened[rank].clone()
    },
    ..CPU
};

/// The same over NCCL, which wants a device for each rank.
#[cfg(feature = "nccl")]
pub const NCCL: Way = Way {
    name: "cuda, over NCCL",
    connect: |communicator, device| communicator.with_nccl(device),
    most: cuda_count,
    ..CUDA
};

#[cfg(feature = "gpu")]
fn cuda_count() -> usize {
    match Device::cuda_count() {
        Ok(count) if count > 0 => count,
        Ok(_) => panic!("the feature `gpu` runs this suite on CUDA devices, and there is none"),
        Err(error) => panic!(
            "the feature `gpu` runs this suite on CUDA devices, which cannot be used: {error}"
        ),
    }
}

/// The CPU, with the feature `gpu` CUDA devices, and with the feature `nccl` also those over
/// NCCL.
pub fn ways() -> Vec<Way> {
    vec![
        CPU,
        #[cfg(feature = "gpu")]
        CUDA,
        #[cfg(feature = "nccl")]
        NCCL,
    ]
}

/// Those, and the CPU with rims ahead, for what takes steps.
pub fn ways_of_steps() -> Vec<Way> {
    [ways(), vec![AHEAD]].concat()
}

/// The ways for what sends numbers of the host alone, in which NCCL has no part.
pub fn ways_of_numbers() -> Vec<Way> {
    vec![
        CPU,
        #[cfg(feature = "gpu")]
        CUDA,
    ]
}

/// The numbers of ranks to test. If only some cases run, these are two, where each rank can have
/// the other on both sides, and four, which can be two by two.
pub fn numbers_of_ranks() -> &'static [usize] {
    test_cases::either(&[2, 4], &[1, 2, 3, 4, 7])
}

impl Way {
    /// The same, but its ranks compute during the messages whatever does not depend on them.
    pub fn ahead(self) -> Self {
        let connect = AHEAD.connect;
        Self { connect, ..self }
    }

    /// The numbers of ranks that it can run.
    pub fn ranks(&self) -> impl Iterator<Item = usize> {
        let all = numbers_of_ranks().iter().copied();
        all.filter(|&ranks| self.takes(ranks))
    }

    /// The device whose bits the ranks must have.
    pub fn one(&self) -> Device {
        (self.device)(0)
    }

    /// Whether it can run this many ranks.
    pub fn takes(&self, ranks: usize) -> bool {
        ranks <= (self.most)()
    }

    /// What each rank returns.
    pub fn run<R: Send>(
        &self,
        ranks: usize,
        work: impl Fn(&Communicator, &Device) -> Result<R, Error> + Sync,
    ) -> Result<Vec<R>, Error> {
        // One test at a time on CUDA devices: kernels of NCCL that wait for each other, of two
        // communicators, may take each other's place.
        static ONE: Mutex<()> = Mutex::new(());
        let is_cuda = self.one().kind() == DeviceKind::Cuda;
        let _one = is_cuda.then(|| ONE.lock().unwrap_or_else(PoisonError::into_inner));
        run(ranks, |communicator| {
            let device = (self.device)(communicator.rank());
            let communicator = (self.connect)(communicator, &device)?;
            work(&communicator, &device)
        })
    }
}

/// The failure of a rank's own work.
pub fn own_failure() -> Error {
    Error::NoSuchRank {
        given: 77,
        ranks: 2,
    }
}

/// Of two ranks, the first one's own work fails during an exchange. It has received the messages, and
/// does not take them for those of the next exchange.
pub fn a_failure_leaves_no_messages(
    communicator: &Communicator,
    device: &Device,
) -> Result<(), Error> {
    let rank = communicator.rank();
    let ring = Decomposition::slabs([8], 2)?.periodic(0)?;
    let mut field = Ghosted::new(communicator, device, ring, 1, |_| rank as f32)?;
    let failed = field.exchange_beside(communicator, |_| match rank {
        0 => Err(own_failure()),
        _ => Ok(()),
    });
    assert_eq!(failed.is_err(), rank == 0, "{failed:?}");
    let (own, other) = (10.0 + rank as f32, 11.0 - rank as f32);
    field.buffer_mut().fill(own)?;
    field.exchange(communicator)?;
    communicator.settle()?;
    let values = field.buffer().to_vec()?;
    assert_eq!(values, [other, own, own, own, own, other]);
    Ok(())
}

/// Numbers without a pattern, of a seed that is printed, or that `HALO_TEST_SEED` gives.
pub fn noise<T: Scalar>(i: usize) -> T {
    static SEED: OnceLock<u64> = OnceLock::new();
    let seed = SEED.get_or_init(|| {
        let seed = match std::env::var("HALO_TEST_SEED") {
            Ok(text) => text.parse().expect("HALO_TEST_SEED must be a u64"),
            Err(_) => rand::random(),
        };
        println!("HALO_TEST_SEED={seed}");
        seed
    });
    let bits = (i as u64 + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(*seed);
    let bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    T::nearest(((bits >> 33) as f64) / f64::from(1_u32 << 30) - 1.0)
}

pub fn bits<T: Scalar>(values: &[T]) -> Vec<u64> {
    values
        .iter()
        .map(|&value| Into::<f64>::into(value).to_bits())
        .collect()
}
