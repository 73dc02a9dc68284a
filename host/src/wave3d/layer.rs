//! Absorbing layers, in which waves are damped.

use crate::{Axis, Boundary, Error, Grid3};

/// What errors call the family.
pub(super) const OPERATION: &str = "wave3d";

/// A layer before each open end ([`Boundary::OneSided`]) of a grid, in which waves are damped:
/// `∂²u/∂t² + σ ∂u/∂t = c² ∇²u`.
///
/// σ grows with the square of the depth in the layer, so that little is reflected where it
/// begins, up to `3 c ln(1/R) / L` at the end: a wave that goes through a layer of length L,
/// against its end, and back is R times as high in the limit of fine grids, its amplitude
/// falling as `exp(-∫ σ/2 dt)`. Where layers meet, their σ add up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layer {
    /// Points of the grid that it takes at each open end: two wavelengths or so.
    pub points: usize,
    /// R, between 0 and 1: the fraction of a wave that remains. 0.001 suits layers of 20 points; a
    /// smaller one makes σ steep, which also reflects.
    pub left: f64,
}

impl Layer {
    /// That it can be on this grid.
    pub(super) fn check(&self, grid: &Grid3) -> Result<(), Error> {
        let invalid = |parameter, given: String, required: String| Error::InvalidParameter {
            operation: OPERATION,
            parameter,
            given,
            required,
        };
        if !(self.left > 0.0 && self.left < 1.0) {
            let required = "above 0 and below 1".to_owned();
            return Err(invalid(
                "what a layer leaves",
                self.left.to_string(),
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

    /// σ over c at a point, one over a length.
    pub(super) fn damping(&self, grid: &Grid3, point: [usize; 3]) -> f64 {
        let along = Axis::ALL.map(|axis| {
            let (n, at) = (grid.extent(axis), point[axis.index()]);
            let length = self.points as f64 * grid.spacing(axis);
            let steepest = 3.0 * (1.0 / self.left).ln() / length;
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
