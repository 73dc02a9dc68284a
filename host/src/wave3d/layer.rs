//! Absorbing layers: regions at the ends of a grid where waves are damped.

use crate::{Axis, Boundary, Error, Grid3};

/// The family's name in errors.
pub(super) const OPERATION: &str = "wave3d";

/// A layer before each open end ([`Boundary::OneSided`]) of a grid, in which waves are damped:
/// `∂²u/∂t² + σ ∂u/∂t = c² ∇²u`.
///
/// σ grows with the square of the depth in the layer, so that its beginning reflects little, up to
/// `3 c ln(1/R) / L` at the end. The amplitude of a wave falls as `exp(-∫ σ/2 dt)`: in the limit of
/// fine grids, a wave that crosses a layer of length L, is reflected at its end and crosses it
/// again has R times its amplitude. Where layers overlap, their σ are added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layer {
    /// Grid points of the layer at each open end: about two wavelengths.
    pub points: usize,
    /// R, between 0 and 1: the fraction of the amplitude that remains. 0.001 suits layers of 20
    /// points; a smaller value makes σ steep, which also reflects.
    pub reflection: f64,
}

impl Layer {
    /// Checks that this grid can have the layer.
    pub(super) fn check(&self, grid: &Grid3) -> Result<(), Error> {
        let invalid = |parameter, given: String, required: String| Error::InvalidParameter {
            operation: OPERATION,
            parameter,
            given,
            required,
        };
        if !(self.reflection > 0.0 && self.reflection < 1.0) {
            let required = "above 0 and below 1".to_owned();
            return Err(invalid(
                "the reflection of a layer",
                self.reflection.to_string(),
                required,
            ));
        }
        let open = |axis: &Axis| grid.ends(*axis).contains(&Boundary::OneSided);
        let shortest = Axis::ALL.into_iter().filter(open);
        let shortest = shortest.map(|axis| grid.extent(axis)).min();
        if self.points == 0 || shortest.is_some_and(|n| self.points > n) {
            let required = match shortest {
                Some(n) => format!("from 1 to {n}, the points between open ends"),
                None => "at least 1".to_owned(),
            };
            return Err(invalid(
                "the points of a layer",
                self.points.to_string(),
                required,
            ));
        }
        Ok(())
    }

    /// σ / c at a point, in the unit 1 / length.
    pub(super) fn damping(&self, grid: &Grid3, point: [usize; 3]) -> f64 {
        let along = Axis::ALL.map(|axis| {
            let (n, at) = (grid.extent(axis), point[axis.index()]);
            let length = self.points as f64 * grid.spacing(axis);
            let steepest = 3.0 * (1.0 / self.reflection).ln() / length;
            let ends = grid.ends(axis).into_iter().zip([at, n - 1 - at]);
            let open = ends.filter(|(end, _)| *end == Boundary::OneSided);
            let depths = open.map(|(_, at)| self.points.saturating_sub(at));
            depths
                .map(|depth| steepest * (depth as f64 / self.points as f64).powi(2))
                .sum::<f64>()
        });
        along.iter().sum()
    }
}
