//! Functions that differ between the two precisions in the type, in names and in constants alone.
//! Each macro makes those of one precision, from what is in scope where it stands.

/// The hyperbolic cosine and the inverse functions. `large` is two to the power of the fraction's bits;
/// below `small` the inverse sine and tangent are their argument.
macro_rules! hyperbolic {
    ($real:ident: $cosh:ident, $asinh:ident, $acosh:ident, $atanh:ident; large $large:literal, small $small:literal) => {
        /// The hyperbolic cosine.
        #[inline]
        pub fn $cosh(x: $real) -> $real {
            let (s, rising, t, falling) = quarters(x.abs());
            2.0 * (s + fma(s, rising, fma(t, falling, t)))
        }

        /// `sqrt(a² + b)` and what rounding took from it, for `a` and `b/2` up to `LARGE`.
        #[inline(always)]
        fn root_of_sum(a: $real, b: $real) -> ($real, $real) {
            let square = a * a;
            let square_low = fma(a, a, -square);
            let (more, less) = if square > b { (square, b) } else { (b, square) };
            let sum = more + less;
            let low = (more - sum) + less + square_low;
            let s = root(sum);
            (s, (fma(-s, s, sum) + low) * divide(0.5, s))
        }

        /// From here on, `x` and `sqrt(x² ± 1)` are the same for a logarithm.
        const LARGE: $real = $large;

        /// The inverse hyperbolic sine: `ln(1 + (a + (sqrt(1 + a²) - 1)))`, all of it in sums
        /// of two floats.
        #[inline]
        pub fn $asinh(x: $real) -> $real {
            let a = x.abs();
            let (s, s_low) = root_of_sum(if a > LARGE { LARGE } else { a }, 1.0);
            let sum = a + (s - 1.0);
            let low = (a - sum) + (s - 1.0) + s_low;
            // ln 2a = ln 2 + ln(1 + (a - 1))
            let (sum, low, twos) = if a > LARGE {
                (a, -1.0, 1.0)
            } else {
                (sum, low, 0.0)
            };
            let value = ln_1p_sum(sum, low, twos);
            let value = if a < $small { a } else { value };
            if a == $real::INFINITY { a } else { value }.copysign(x)
        }

        /// The inverse hyperbolic cosine: `ln(1 + (t + sqrt(t² + 2t)))` with `t = x - 1`.
        #[inline]
        pub fn $acosh(x: $real) -> $real {
            let t = x - 1.0;
            let small = if t > LARGE { LARGE } else { t };
            let (s, s_low) = root_of_sum(small, 2.0 * small);
            let sum = s + t;
            let low = (s - sum) + t + s_low;
            let (sum, low, twos) = if t > LARGE {
                (x, -1.0, 1.0)
            } else {
                (sum, low, 0.0)
            };
            let value = ln_1p_sum(sum, low, twos);
            let value = if x > 1.0 { value } else { $real::NAN };
            let value = if x == 1.0 { 0.0 } else { value };
            if x == $real::INFINITY { x } else { value }
        }

        /// The inverse hyperbolic tangent: half of `ln(1 + 2a / (1 - a))`.
        #[inline]
        pub fn $atanh(x: $real) -> $real {
            let a = x.abs();
            let below = 1.0 - a;
            let below_low = (1.0 - below) - a;
            let inverse = divide(1.0, below);
            let quotient = 2.0 * a * inverse;
            let low = fma(-quotient, below_low, fma(-quotient, below, 2.0 * a)) * inverse;
            let value = 0.5 * ln_1p_sum(quotient, low, 0.0);
            let value = if a < $small { a } else { value };
            let value = if a == 1.0 { $real::INFINITY } else { value };
            if a > 1.0 {
                $real::NAN
            } else {
                value.copysign(x)
            }
        }
    };
}
pub(super) use hyperbolic;

/// Cube roots. `factor` is the cube root of what `inverse_cube_root` multiplies subnormal numbers with.
macro_rules! cube_roots {
    ($real:ident: $cbrt:ident, $rcbrt:ident; factor $factor:literal) => {
        /// The cube root.
        #[inline]
        pub fn $cbrt(x: $real) -> $real {
            let (a, y, subnormal) = inverse_cube_root(x);
            let square = y * y;
            let r = a * square;
            // a - r³, but for its last digits.
            let r2 = r * r;
            let error = fma(-r2, r, a) - fma(r, r, -r2) * r;
            let value = fma(error * (1.0 / 3.0), square, r);
            let value = if subnormal {
                value * (1.0 / $factor)
            } else {
                value
            };
            if x == 0.0 || !x.is_finite() {
                x
            } else {
                value.copysign(x)
            }
        }

        /// The reciprocal cube root.
        #[inline]
        pub fn $rcbrt(x: $real) -> $real {
            let (a, y, subnormal) = inverse_cube_root(x);
            // 1 - a y³, but for its last digits.
            let (p, q) = (a * y, y * y);
            let (p_low, q_low) = (fma(a, y, -p), fma(y, y, -q));
            let error = fma(-p_low, q, fma(-p, q_low, fma(-p, q, 1.0)));
            let value = fma(y * (1.0 / 3.0), error, y);
            let value = if subnormal { value * $factor } else { value };
            let value = if x == 0.0 { $real::INFINITY } else { value };
            let value = if x.is_infinite() { 0.0 } else { value };
            if x.is_nan() { x } else { value.copysign(x) }
        }
    };
}
pub(super) use cube_roots;

/// The inverse trigonometric functions, by `asin_parts` and `atan_rest`.
macro_rules! inverse_trigonometric {
    ($real:ident: $asin:ident, $acos:ident, $atan:ident, $atan2:ident) => {
        /// The arcsine.
        #[inline]
        pub fn $asin(x: $real) -> $real {
            let a = x.abs();
            let (t, rest) = asin_parts(a);
            let far = fma(-2.0, t + (rest - 0.5 * FRAC_PI_2_LOW), FRAC_PI_2);
            if a > 0.5 { far } else { t + rest }.copysign(x)
        }

        /// The arccosine.
        #[inline]
        pub fn $acos(x: $real) -> $real {
            let a = x.abs();
            let (t, rest) = asin_parts(a);
            // π/2 - asin x, or 2 asin t, or π - 2 asin t.
            let near = FRAC_PI_2 - ((rest.copysign(x) - FRAC_PI_2_LOW) + t.copysign(x));
            let right = 2.0 * (t + rest);
            let left = fma(-2.0, t + (rest - FRAC_PI_2_LOW), PI);
            let far = if x > 0.0 { right } else { left };
            if a > 0.5 { far } else { near }
        }

        /// The arctangent.
        #[inline]
        pub fn $atan(x: $real) -> $real {
            /// From far below on the result is π/2.
            const LARGE: $real = (1_u64 << 60) as $real;
            let a = x.abs();
            let large = if a > LARGE { LARGE } else { a };
            let t = if a > 1.0 { divide(1.0, large) } else { a };
            let rest = atan_rest(t);
            let far = FRAC_PI_2 - (t + (rest - FRAC_PI_2_LOW));
            if a > 1.0 { far } else { t + rest }.copysign(x)
        }

        /// The angle of the point (`x`, `y`).
        #[inline]
        pub fn $atan2(y: $real, x: $real) -> $real {
            let (a, b) = (x.abs(), y.abs());
            let steep = b > a;
            let (less, more) = if steep { (a, b) } else { (b, a) };
            let t = less / more;
            // 0/0 stands for 0, and ∞/∞ for 1.
            let t = if more == 0.0 { 0.0 } else { t };
            let t = if less == $real::INFINITY { 1.0 } else { t };
            // The angle is base + sign · atan t.
            let left = x.is_sign_negative();
            let sign = if steep != left { -1.0 } else { 1.0 };
            let (base, base_low) = match (steep, left) {
                (true, _) => (FRAC_PI_2, FRAC_PI_2_LOW),
                (false, true) => (PI, 2.0 * FRAC_PI_2_LOW),
                (false, false) => (0.0, 0.0),
            };
            let angle = base + (fma(sign, atan_rest(t), base_low) + sign * t);
            if x.is_nan() || y.is_nan() {
                x + y
            } else {
                angle.copysign(y)
            }
        }
    };
}
pub(super) use inverse_trigonometric;

/// `x^y`. `scale` is `2 / ln 2` and `third` 1/3 as sums of two floats, `sqrt_half` the bits that `split`
/// takes of `√½`; above `over` a power of two overflows, below `-under` it is 0.
macro_rules! power {
    ($real:ident: $pow:ident; scale $scale:expr, third $third:expr, sqrt_half $sqrt_half:literal,
     series $($p:literal)+, over $over:literal, under $under:literal) => {
        /// `x^y`.
        ///
        /// `log2 |x|` is found as a sum of two floats, as is its product with `y` (T. J. Dekker, "A
        /// floating-point technique for extending the available precision", 1971).
        #[inline]
        pub fn $pow(x: $real, y: $real) -> $real {
            /// `2 / ln 2`
            const SCALE: [$real; 2] = $scale;
            const THIRD: [$real; 2] = $third;
            const SQRT_HALF: u32 = $sqrt_half;

            let a = x.abs();
            let (f, k) = split(a, SQRT_HALF);
            // s = f / (2 + f)
            let sum = 2.0 + f;
            let sum_low = f - (sum - 2.0);
            let inverse = divide(1.0, sum);
            let s = f * inverse;
            let s_low = fma(-s, sum_low, fma(-s, sum, f)) * inverse;
            // w = atanh(s) / s - 1 = u/3 + u² p(u), u = s²
            let u = s * s;
            let u_low = fma(s + s, s_low, fma(s, s, -u));
            let p = polynomial!(u; $($p),+);
            let third = u * THIRD[0];
            let third_low = fma(u, THIRD[1], fma(u, THIRD[0], -third)) + u_low * THIRD[0];
            let rest = u * u * p;
            let w = third + rest;
            let w_low = (third - w) + rest + third_low;
            // t = atanh(s) = s + s w
            let product = s * w;
            let product_low = fma(s, w, -product) + fma(s, w_low, s_low * w);
            let t = s + product;
            let t_low = (s - t) + product + (s_low + product_low);
            // log2 a = k + 2/ln 2 t
            let fraction = t * SCALE[0];
            let fraction_low = fma(t, SCALE[0], -fraction) + fma(t, SCALE[1], t_low * SCALE[0]);
            let log = k + fraction;
            let log_low = (k - log) + fraction + fraction_low;
            // e = y log2 a
            let e = y * log;
            let e_low = fma(y, log_low, fma(y, log, -e));
            let (n, integer) = nearest(e, 1.0);
            let value = scale(exp2_reduced((e - n) + e_low), integer);
            let value = if e > $over { $real::INFINITY } else { value };
            let value = if e < -$under { 0.0 } else { value };

            // 1 to an infinite power; 0 and infinity.
            let value = if a == 1.0 { 1.0 } else { value };
            let value = if a == 0.0 || a == $real::INFINITY {
                if (a == 0.0) == (y < 0.0) {
                    $real::INFINITY
                } else {
                    0.0
                }
            } else {
                value
            };
            // Negative x: NaN, or a sign if y is an odd integer.
            let integer = crate::GpuFloat::trunc(y) == y;
            let odd = integer && crate::GpuFloat::trunc(0.5 * y) != 0.5 * y;
            let value = if x.is_sign_negative() && odd {
                -value
            } else {
                value
            };
            let undefined = x < 0.0 && !integer && a != $real::INFINITY;
            let value = if undefined { $real::NAN } else { value };
            let value = if x.is_nan() || y.is_nan() {
                x + y
            } else {
                value
            };
            if x == 1.0 || y == 0.0 { 1.0 } else { value }
        }
    };
}
pub(super) use power;

/// The reduction by `π/2`, given by the bits of its parts: Cody and Waite's below `limit`, else that of
/// `reduce_large`.
macro_rules! quarter_turns {
    ($real:ident: limit $limit:literal, parts $($part:literal)+) => {
        /// `(r, low, q)` with `x = q π/2 + r + low` and `|r|` at most a little over `π/4`;
        /// `low` is what rounding took from `r`, or 0 if it is not asked for; `q` counts
        /// modulo 4.
        #[inline(always)]
        fn reduce<const LOW: bool>(x: $real) -> ($real, $real, i32) {
            /// `π/2`, each part cut off: all are positive, so that -0 stays -0.
            const FRAC_PI_2: [$real; 3] = [$($real::from_bits($part)),+];
            if x.abs() < $limit {
                let (n, q) = nearest(x, core::$real::consts::FRAC_2_PI);
                // The first product cancels x's leading digits: exact.
                let first = fma(n, -FRAC_PI_2[0], x);
                if LOW {
                    let second = n * FRAC_PI_2[1];
                    let r = first - second;
                    let second_low = fma(n, FRAC_PI_2[1], -second);
                    let low = (first - r) - second - second_low;
                    let low = fma(n, -FRAC_PI_2[2], low);
                    (r + low, r - (r + low) + low, q)
                } else {
                    let r = fma(n, -FRAC_PI_2[1], first);
                    (fma(n, -FRAC_PI_2[2], r), 0.0, q)
                }
            } else {
                reduce_large(x)
            }
        }
    };
}
pub(super) use quarter_turns;

/// The inverses of the error function and of its complement, by `inverse` and the natural logarithm.
macro_rules! inverse_error_functions {
    ($real:ident: $erfinv:ident, $erfcinv:ident; $log:ident) => {
        /// The inverse of the error function.
        #[inline]
        pub fn $erfinv(x: $real) -> $real {
            let (value, _) = inverse(-$log(fma(-x, x, 1.0)), x, 0.0);
            if x.abs() == 1.0 {
                $real::INFINITY.copysign(x)
            } else if x == 0.0 {
                // Zeros have signs.
                x
            } else {
                value
            }
        }

        /// The inverse of its complement.
        #[inline]
        pub fn $erfcinv(y: $real) -> $real {
            inverse_of_tail(y).0
        }

        /// The inverse of the complement, as the sum of two floats.
        #[inline(always)]
        fn inverse_of_tail(y: $real) -> ($real, $real) {
            let x = 1.0 - y;
            let (value, low) = inverse(-$log(y * (2.0 - y)), x, (1.0 - x) - y);
            if y == 0.0 || y == 2.0 {
                ($real::INFINITY.copysign(x), 0.0)
            } else {
                (value, low)
            }
        }
    };
}
pub(super) use inverse_error_functions;
