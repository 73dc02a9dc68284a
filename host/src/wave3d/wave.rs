//! What is computed, and its state.

use super::gpu::{Kernels, MAX_RADIUS, Weights};
use crate::finite_difference;
use crate::stencil::Running;
use crate::{Axis, Boundary, Buffer, Cost, Device, Error, Field3, Grid3, Shape3};

const OPERATION: &str = "wave3d";

/// A layer before each end that is not periodic, in which waves fade.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Layer {
    points: usize,
    reflection: f64,
}

/// Steps of u_tt = c² ∇²u on a grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wave3d {
    grid: Grid3,
    time_step: f64,
    accuracy: u32,
    layer: Option<Layer>,
}

impl Wave3d {
    /// Steps of length `time_step` on `grid`, of second order in space.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] and [`Error::InvalidParameter`] for a step that is not a positive
    /// number; [`Error::IndexOverflow`] for a grid that kernels cannot count: more than 2³⁰
    /// points along an axis, or 2³¹ in a plane.
    pub fn new(grid: Grid3, time_step: f64) -> Result<Self, Error> {
        if !time_step.is_finite() {
            return Err(Error::NonFinite {
                operation: OPERATION,
                parameter: "the time step",
                given: time_step,
            });
        }
        if time_step <= 0.0 {
            return Err(invalid("the time step", time_step.to_string(), "positive"));
        }
        grid.shape().points()?;
        let Shape3 { nx, ny, nz } = grid.shape();
        if halo_stencil::blocks(3, [nx, ny, nz], 1).is_none() {
            return Err(Error::IndexOverflow {
                what: format!("{OPERATION}: an extent of the grid, or the points of a plane,"),
                given: grid.shape().to_string(),
                limit: halo_stencil::MAX_EXTENT.into(),
            });
        }
        Ok(Self {
            grid,
            time_step,
            accuracy: 2,
            layer: None,
        })
    }

    /// The same, with this order of accuracy in space: 2, 4, 6 or 8.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for another one.
    pub fn with_accuracy(mut self, accuracy: u32) -> Result<Self, Error> {
        if !matches!(accuracy, 2 | 4 | 6 | 8) {
            let required = "2, 4, 6 or 8";
            return Err(invalid(
                "the order of accuracy",
                accuracy.to_string(),
                required,
            ));
        }
        self.accuracy = accuracy;
        Ok(self)
    }

    /// The same, with a layer of so many points before each end that is not periodic, in which
    /// waves fade.
    ///
    /// At a distance x into a layer of thickness L, σ = 3 c ln(1/R) / (2 L) (x / L)²: of a wave
    /// that goes straight through and back again, the part `reflection` R, between 0 and 1, is
    /// left; by the layer's own reflection it is more. Where two layers meet, the larger σ
    /// counts.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a layer of no points or with more than half of an axis,
    /// for a reflection that is not between 0 and 1, and where all axes are periodic.
    pub fn with_absorbing_layer(mut self, points: usize, reflection: f64) -> Result<Self, Error> {
        let open = Axis::ALL.into_iter().filter(|axis| self.is_open(*axis));
        let Some(most) = open.map(|axis| self.grid.extent(axis) / 2).min() else {
            return Err(invalid(
                "the absorbing layer",
                "of a grid that is periodic along every axis".to_owned(),
                "of one that has an end",
            ));
        };
        if points == 0 || points > most {
            let required = format!("from 1 to {most}, half of the shortest axis that has ends");
            return Err(invalid(
                "the points of the absorbing layer",
                points.to_string(),
                &required,
            ));
        }
        if !(reflection > 0.0 && reflection < 1.0) {
            return Err(invalid(
                "the reflection",
                reflection.to_string(),
                "between 0 and 1",
            ));
        }
        self.layer = Some(Layer { points, reflection });
        Ok(self)
    }

    /// Whether an axis has ends.
    fn is_open(&self, axis: Axis) -> bool {
        let [first, _]: [Boundary; 2] = self.grid.ends(axis);
        !first.is_periodic()
    }

    /// The grid.
    #[must_use]
    pub const fn grid(&self) -> &Grid3 {
        &self.grid
    }

    /// The length of a step.
    #[must_use]
    pub const fn time_step(&self) -> f64 {
        self.time_step
    }

    /// The order of accuracy in space.
    #[must_use]
    pub const fn accuracy(&self) -> u32 {
        self.accuracy
    }

    /// The weights of second derivatives for unit spacing: of the point, and of its neighbours,
    /// the nearest first.
    fn unit_weights(&self) -> Result<(f64, [f64; MAX_RADIUS]), Error> {
        let weights = finite_difference::Weights::central(2, self.accuracy)?;
        let (values, radius) = (weights.values(), self.accuracy as usize / 2);
        let mut neighbours = [0.0; MAX_RADIUS];
        neighbours[..radius].copy_from_slice(&values[radius + 1..]);
        Ok((values[radius], neighbours))
    }

    /// The weights of L.
    pub(super) fn weights(&self) -> Result<Weights, Error> {
        let (centre, neighbours) = self.unit_weights()?;
        let squares = Axis::ALL.map(|axis| self.grid.spacing(axis).powi(-2));
        Ok(Weights {
            centre: centre * squares.iter().sum::<f64>(),
            axes: squares.map(|square| neighbours.map(|weight| weight * square)),
        })
    }

    /// The longest stable step where the velocity is at most `fastest`:
    /// `2 / (c √(Λ (1/h_x² + 1/h_y² + 1/h_z²)))`, Λ being what the second derivative makes of the
    /// mode that changes sign from point to point: 4 for the second order, 6.5 for the eighth.
    ///
    /// ```
    /// use halo_gpu::wave3d::Wave3d;
    /// use halo_gpu::{Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let wave = Wave3d::new(Grid3::new(Shape3::cube(8), [1.0; 3])?, 0.1)?;
    /// assert!((wave.longest_step(2.0)? - 0.5 / 3.0_f64.sqrt()).abs() < 1e-15);
    /// assert!(wave.with_accuracy(8)?.longest_step(2.0)? < wave.longest_step(2.0)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a velocity that is not a positive number.
    pub fn longest_step(&self, fastest: f64) -> Result<f64, Error> {
        if !(fastest > 0.0 && fastest.is_finite()) {
            return Err(invalid(
                "the velocity",
                fastest.to_string(),
                "positive and finite",
            ));
        }
        let (centre, neighbours) = self.unit_weights()?;
        let signs = neighbours.iter().enumerate();
        let alternating = signs.map(|(m, weight)| if m % 2 == 0 { -weight } else { *weight });
        let largest = -(centre + 2.0 * alternating.sum::<f64>());
        let squares = Axis::ALL.map(|axis| self.grid.spacing(axis).powi(-2));
        Ok(2.0 / (fastest * (largest * squares.iter().sum::<f64>()).sqrt()))
    }

    /// The least that a step in `T` has to do.
    #[must_use]
    pub fn cost<T: Kernels>(&self) -> Cost {
        // `new` found the product to fit.
        let Shape3 { nx, ny, nz } = self.grid.shape();
        let points = (nx * ny * nz) as u64;
        let (fields, flops) = match self.layer {
            None => (4, 5),
            Some(_) => (5, 9),
        };
        Cost {
            bytes: points * fields * size_of::<T>() as u64,
            flops: points * (flops + 9 * u64::from(self.accuracy / 2)),
        }
    }

    /// A wave that is at rest as `initial` and then let go, on a device. `velocity` is c at
    /// every point.
    ///
    /// The step before the first is what the equation makes of the rest to the second order:
    /// u(-Δt) = u + (c Δt)² / 2 L u.
    ///
    /// # Errors
    ///
    /// As [`start_from`](Self::start_from).
    pub fn start<T: Kernels>(
        &self,
        device: &Device,
        velocity: &Field3<T>,
        initial: &Field3<T>,
    ) -> Result<Sound<T>, Error> {
        let halved = |speed: f64| speed / 2.0;
        self.check(velocity, initial, initial)?;
        let speeds = self.speeds(velocity)?;
        let half: Vec<T> = speeds
            .iter()
            .map(|s| T::nearest(halved((*s).into())))
            .collect();
        // From u and u it goes to u + (c Δt)² / 2 L u.
        let u = initial.as_slice();
        let fields = [u, u, &half];
        let mut first =
            T::start_acoustic(self.grid, self.accuracy, self.weights()?, device, fields)?;
        first.steps(1)?;
        let past = Field3::from_vec(self.grid.shape(), first.field(0).to_vec()?)?;
        self.start_from(device, velocity, initial, &past)
    }

    /// A wave that is `now`, and was `past` a step before, on a device.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] for fields of another shape than the grid's;
    /// [`Error::InvalidElement`] for a velocity that is not a positive number;
    /// [`Error::Unstable`] for a step that is longer than
    /// [`longest_step`](Self::longest_step) of the largest velocity; [`Error::OutOfMemory`] and
    /// what else [`Device::upload`] fails with.
    pub fn start_from<T: Kernels>(
        &self,
        device: &Device,
        velocity: &Field3<T>,
        now: &Field3<T>,
        past: &Field3<T>,
    ) -> Result<Sound<T>, Error> {
        let fastest = self.check(velocity, now, past)?;
        let speeds = self.speeds(velocity)?;
        let weights = self.weights()?;
        let (grid, order) = (self.grid, self.accuracy);
        let fields = [now.as_slice(), past.as_slice(), &speeds];
        let running = match self.layer {
            None => T::start_acoustic(grid, order, weights, device, fields)?,
            Some(layer) => {
                let damping = self.damping::<T>(layer, fastest)?;
                let [now, past, speeds] = fields;
                let fields = [now, past, speeds, damping.as_slice()];
                T::start_absorbing(grid, order, weights, device, fields)?
            }
        };
        Ok(Sound {
            wave: *self,
            running,
        })
    }

    /// Refuses fields that do not fit; returns the largest velocity.
    fn check<T: Kernels>(
        &self,
        velocity: &Field3<T>,
        now: &Field3<T>,
        past: &Field3<T>,
    ) -> Result<f64, Error> {
        let fields = [
            ("the velocity", velocity),
            ("the field now", now),
            ("the field a step before", past),
        ];
        for (what, field) in fields {
            if field.shape() != self.grid.shape() {
                return Err(Error::ShapeMismatch {
                    what: format!("{OPERATION}: {what}"),
                    required: self.grid.shape().to_string(),
                    given: field.shape().to_string(),
                });
            }
        }
        let mut fastest = 0.0_f64;
        for (index, &given) in velocity.as_slice().iter().enumerate() {
            let given: f64 = given.into();
            if !(given > 0.0 && given.is_finite()) {
                return Err(Error::InvalidElement {
                    operation: OPERATION,
                    what: "the velocity at element",
                    index,
                    given,
                    required: "a positive number".to_owned(),
                });
            }
            fastest = fastest.max(given);
        }
        let limit = self.longest_step(fastest)?;
        if self.time_step > limit {
            return Err(Error::Unstable {
                operation: OPERATION,
                time_step: self.time_step,
                limit,
            });
        }
        Ok(fastest)
    }

    /// (c Δt)².
    fn speeds<T: Kernels>(&self, velocity: &Field3<T>) -> Result<Vec<T>, Error> {
        let mut speeds = crate::allocation::reserve(velocity.as_slice().len())?;
        speeds.extend(velocity.as_slice().iter().map(|&c| {
            let c: f64 = c.into();
            T::nearest((c * self.time_step).powi(2))
        }));
        Ok(speeds)
    }

    /// σ Δt.
    fn damping<T: Kernels>(&self, layer: Layer, fastest: f64) -> Result<Field3<T>, Error> {
        let along = |axis: Axis, at: usize| {
            if !self.is_open(axis) {
                return 0.0;
            }
            let to_end = at.min(self.grid.extent(axis) - 1 - at);
            let inside = layer.points.saturating_sub(to_end) as f64 / layer.points as f64;
            let thickness = layer.points as f64 * self.grid.spacing(axis);
            1.5 * fastest * -layer.reflection.ln() / thickness * inside * inside
        };
        Field3::from_fn(self.grid.shape(), |i, j, k| {
            let sigma = along(Axis::X, i)
                .max(along(Axis::Y, j))
                .max(along(Axis::Z, k));
            T::nearest(sigma * self.time_step)
        })
    }
}

fn invalid(parameter: &'static str, given: String, required: &str) -> Error {
    Error::InvalidParameter {
        operation: OPERATION,
        parameter,
        given,
        required: required.to_owned(),
    }
}

/// A wave on a device, from step to step: [`Wave3d::start`].
#[derive(Debug)]
pub struct Sound<T: Kernels> {
    wave: Wave3d,
    running: Box<dyn Running<T>>,
}

impl<T: Kernels> Sound<T> {
    /// What is computed.
    #[must_use]
    pub const fn wave(&self) -> &Wave3d {
        &self.wave
    }

    /// Takes `count` steps. On CUDA devices this does not wait for them.
    ///
    /// # Errors
    ///
    /// What a launch can fail with.
    pub fn steps(&mut self, count: usize) -> Result<(), Error> {
        self.running.steps(count)
    }

    /// The time that the steps have taken.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.wave.time_step * self.running.steps_taken() as f64
    }

    /// The wave now, on the device.
    #[must_use]
    pub fn buffer(&self) -> &Buffer<T> {
        self.running.field(0)
    }

    /// The same to be written: a source between steps.
    #[must_use]
    pub fn buffer_mut(&mut self) -> &mut Buffer<T> {
        self.running.field_mut(0)
    }

    /// The wave a step before, on the device.
    #[must_use]
    pub fn past(&self) -> &Buffer<T> {
        self.running.field(1)
    }

    /// The wave now, on the host. Waits for the steps.
    ///
    /// # Errors
    ///
    /// As [`Buffer::to_vec`].
    pub fn field(&self) -> Result<Field3<T>, Error> {
        Field3::from_vec(self.wave.grid.shape(), self.buffer().to_vec()?)
    }
}
