//! Rows of heat2d: a sweep by each of the five kernels, or by the port on the CPU.
//!
//! What is timed is one sweep after another on a plate that stays on the device.
//! What is checked is the textbook's number of sweeps from its initial plate (fewer
//! of a large one): the kernels' against the port's and the port's against a plain
//! loop's. The error is printed as the textbook prints it.

use std::cell::OnceCell;
use std::rc::Rc;

use halo_gpu::heat2d::{Heat2d, Plate, Variant, problem};
use halo_gpu::{Device, DeviceKind, Errors, Field2, Shape2};

use super::harness::{Check, Family, Metric, Plan, Prepared, Row, Slots, Unit, Work};
use super::size::Size;
use crate::error::Error;

pub(super) const FAMILY: Family = Family {
    name: NAME,
    kernels,
    plan,
    sizes: &["256", "1024", "4096", "16384"],
};

const NAME: &str = "heat2d";

fn kernels() -> Vec<&'static str> {
    Variant::ALL.iter().map(|variant| variant.name()).collect()
}

fn plan(device: &Device, size: Option<&Size>) -> Result<Plan, Error> {
    let shape = match size {
        Some(size) => {
            let [nx, ny] = size.rectangle(NAME)?;
            Shape2::new(nx, ny)
        }
        None => problem::SHAPE,
    };
    let heat = Heat2d::new(shape)?;
    let reference = Reference::default();
    let by = match device.kind() {
        DeviceKind::Cpu => vec![By::Port],
        DeviceKind::Emulator | DeviceKind::Cuda => Variant::ALL.map(By::Kernel).to_vec(),
    };
    let rows = by
        .into_iter()
        .map(|by| {
            let reference = reference.clone();
            Box::new(Sweep {
                heat,
                by,
                reference,
            }) as Box<dyn Row>
        })
        .collect();
    Ok(Plan {
        size: format!("{}x{}", shape.nx, shape.ny),
        elements: shape.points()? as u64,
        problem: format!(
            "one Jacobi sweep over {shape} points, f32, left wall at 1; errors after {} sweeps \
             against {}, the root mean square in %",
            sweeps_to_check(&heat),
            match device.kind() {
                DeviceKind::Cpu => "a plain loop",
                DeviceKind::Emulator | DeviceKind::Cuda => "the CPU port",
            }
        ),
        boundary: Some("walls keep their temperature".to_owned()),
        // A plate and the one it is swept into.
        working_set_bytes: 2 * size_of::<f32>() as u64 * shape.points()? as u64,
        rows,
        left_out: Vec::new(),
        refused: None,
    })
}

/// Sweeps before a plate is compared: the textbook's number, or fewer where it
/// would take the port seconds.
fn sweeps_to_check(heat: &Heat2d) -> usize {
    const MOST_POINTS: u64 = 1 << 31;
    let affordable = MOST_POINTS / heat.interior_points();
    usize::try_from(affordable).map_or(problem::SWEEPS, |most| most.clamp(2, problem::SWEEPS))
}

/// What the plates of all rows are after all sweeps, computed when the first of
/// them is checked.
type Reference = Rc<OnceCell<Field2<f32>>>;

/// What computes a row.
#[derive(Clone, Copy)]
enum By {
    Kernel(Variant),
    Port,
}

impl By {
    fn start(self, heat: &Heat2d, device: &Device) -> Result<Plate, Error> {
        let initial = problem::hot_left_wall(heat.shape())?;
        Ok(match self {
            Self::Kernel(variant) => heat.start_with(variant, device, &initial)?,
            Self::Port => heat.start(device, &initial)?,
        })
    }
}

struct Sweep {
    heat: Heat2d,
    by: By,
    reference: Reference,
}

impl Row for Sweep {
    fn name(&self) -> String {
        match self.by {
            By::Kernel(variant) => variant.name().to_owned(),
            By::Port => "heat2d, CPU port".to_owned(),
        }
    }

    fn tile(&self) -> String {
        match self.by {
            By::Kernel(variant) => variant.tile(),
            By::Port => None,
        }
        .map_or_else(
            || "–".to_owned(),
            |[rows, columns]| format!("{rows} × {columns}"),
        )
    }

    fn work(&self) -> Work {
        Work {
            bytes: self.heat.bytes(),
            flops: self.heat.flops(),
            items: self.heat.interior_points(),
            unit: Unit::Points,
            metric: Metric::Bandwidth,
            slots: Slots::default(),
        }
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        Ok(Box::new(Ready {
            heat: self.heat,
            by: self.by,
            plate: self.by.start(&self.heat, device)?,
            device: device.clone(),
            reference: self.reference.clone(),
        }))
    }
}

struct Ready {
    heat: Heat2d,
    by: By,
    plate: Plate,
    device: Device,
    reference: Reference,
}

impl Ready {
    fn reference(&self) -> Result<&Field2<f32>, Error> {
        if let Some(reference) = self.reference.get() {
            return Ok(reference);
        }
        let plate = match self.by {
            By::Kernel(_) => {
                let mut plate = By::Port.start(&self.heat, &Device::cpu())?;
                plate.sweep(sweeps_to_check(&self.heat))?;
                plate.field()?
            }
            By::Port => plain_loop(
                problem::hot_left_wall(self.heat.shape())?,
                sweeps_to_check(&self.heat),
            ),
        };
        Ok(self.reference.get_or_init(|| plate))
    }
}

/// The plate after all sweeps, straight from the definition.
fn plain_loop(mut old: Field2<f32>, sweeps: usize) -> Field2<f32> {
    let shape = old.shape();
    let mut new = old.clone();
    for _ in 0..sweeps {
        for j in 1..shape.ny - 1 {
            for i in 1..shape.nx - 1 {
                let (east, west) = (old[(i + 1, j)], old[(i - 1, j)]);
                let (north, south) = (old[(i, j + 1)], old[(i, j - 1)]);
                new[(i, j)] = ((east + west) + (north + south)) * 0.25;
            }
        }
        std::mem::swap(&mut old, &mut new);
    }
    old
}

impl Prepared for Ready {
    fn check(&mut self) -> Result<Check, Error> {
        // From the beginning, whatever was swept before.
        self.plate = self.by.start(&self.heat, &self.device)?;
        self.plate.sweep(sweeps_to_check(&self.heat))?;
        let plate = self.plate.field()?;
        let (plate, reference) = (plate.as_slice(), self.reference()?.as_slice());
        let errors = if plate == reference {
            Errors { rms: 0.0, max: 0.0 }
        } else {
            Errors {
                rms: problem::percentage_rms_error(plate, reference),
                ..Errors::of(plate, |index| f64::from(reference[index]))
            }
        };
        // The order of the operations is the same, and so is every bit.
        Ok(Check::new(errors, Errors { rms: 0.0, max: 0.0 }))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.plate.sweep(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_the_five_textbook_kernels() {
        let names = [
            "heat2d_global",
            "heat2d_shared_core",
            "heat2d_shared_overlap",
            "heat2d_shared_halo",
            "heat2d_texture",
        ];
        assert_eq!(kernels(), names);
        let rows = plan(&Device::emulator(), None).unwrap().rows;
        assert_eq!(rows.iter().map(|row| row.name()).collect::<Vec<_>>(), names);
    }

    #[test]
    fn every_row_passes_its_check_at_a_size_of_its_own() {
        for device in [Device::cpu(), Device::emulator()] {
            let plan = plan(&device, Some(&"20x35".parse().unwrap())).unwrap();
            assert!(!plan.rows.is_empty());
            for row in plan.rows {
                let mut ready = row.prepare(&device).unwrap();
                // Again, on what launches have left.
                for _ in 0..2 {
                    let check = ready.check().unwrap();
                    assert!(check.passes(), "{}: {check:?}", row.name());
                    ready.launch().unwrap();
                }
            }
        }
    }

    #[test]
    fn a_large_plate_is_checked_after_fewer_sweeps() {
        let sweeps = |n| sweeps_to_check(&Heat2d::new(Shape2::new(n, n)).unwrap());
        assert_eq!([sweeps(3), sweeps(256), sweeps(4096)], [100; 3]);
        assert_eq!(sweeps(16_384), 8);
        assert_eq!(sweeps(65_536), 2);
    }

    #[test]
    fn a_size_that_is_no_plate_is_refused_before_anything_runs() {
        let refusal = |size: &str| {
            let error = plan(&Device::emulator(), Some(&size.parse().unwrap()))
                .err()
                .unwrap();
            crate::error::chain(&error)
        };
        assert!(
            refusal("2x64").contains("at least 3"),
            "{}",
            refusal("2x64")
        );
        assert!(refusal("4x4x4").contains("NXxNY"), "{}", refusal("4x4x4"));
    }
}
