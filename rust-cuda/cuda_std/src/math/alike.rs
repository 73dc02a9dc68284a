//! Functions that differ between the two precisions only in the type, in names and in constants.
//! Each macro writes the functions of one precision, with the constants and functions of the module
//! that calls it.

/// The fused multiply-add, also for a sum of two floats.
macro_rules! multiply_add {
    ($real:ident) => {
        /// `a * b + c`, rounded once.
        #[inline(always)]
        fn fma(a: $real, b: $real, c: $real) -> $real {
            crate::exact::$real::mul_add(a, b, c)
        }

        /// `a * b + high + low` as the sum of two floats, if `a * b` is smaller than `high`.
        #[inline(always)]
        fn fma_of_sum(a: $real, b: $real, [high, low]: [$real; 2]) -> ($real, $real) {
            let sum = fma(a, b, high);
            (sum, fma(a, b, high - sum) + low)
        }
    };
}
pub(super) use multiply_add;

/// The hyperbolic cosine and the inverse hyperbolic functions. `large` is two to the power of the
/// number of fraction bits; below `small` the inverse sine and tangent equal their argument.
macro_rules! hyperbolic {
    ($real:ident: $cosh:ident, $asinh:ident, $acosh:ident, $atanh:ident; large $large:literal, small $small:literal) => {
        /// The hyperbolic cosine.
        #[inline]
        pub fn $cosh(x: $real) -> $real {
            let (s, rising, t, falling) = quarters(x.abs());
            2.0 * (s + fma(s, rising, fma(t, falling, t)))
        }

        /// `sqrt(a² + b)` and its rounding error, for `a` and `b/2` up to `LARGE`.
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

        /// From here on, `x` in place of `sqrt(x² ± 1)` gives the same logarithm.
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

/// Cube roots. `factor` is the cube root of the factor by which `inverse_cube_root` scales
/// subnormal numbers.
macro_rules! cube_roots {
    ($real:ident: $cbrt:ident, $rcbrt:ident; factor $factor:literal) => {
        /// The cube root.
        #[inline]
        pub fn $cbrt(x: $real) -> $real {
            let (a, y, subnormal) = inverse_cube_root(x);
            let square = y * y;
            let r = a * square;
            // a - r³, without its last digits.
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
            // 1 - a y³, without its last digits.
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
            /// The result is π/2 for far smaller arguments already.
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
            // 0/0 counts as 0, and ∞/∞ as 1.
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

/// `x^y`. `scale` is `2 / ln 2` and `third` 1/3 as sums of two floats, `sqrt_half` the bits of `√½`
/// for `split`. A power of two overflows for exponents above `over`, and is 0 below `-under`.
macro_rules! power {
    ($real:ident: $pow:ident; scale $scale:expr, third $third:expr, sqrt_half $sqrt_half:literal,
     series $($p:literal)+, over $over:literal, under $under:literal) => {
        /// `log2 a` of a positive number as the sum of two floats (T. J. Dekker, "A floating-point
        /// technique for extending the available precision", 1971).
        #[inline(always)]
        pub(super) fn log2_terms(a: $real) -> ($real, $real) {
            /// `2 / ln 2`
            const SCALE: [$real; 2] = $scale;
            const THIRD: [$real; 2] = $third;
            const SQRT_HALF: u32 = $sqrt_half;

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
            (log, log_low)
        }

        /// `x^y`: `log2 |x|` and its product with `y` are sums of two floats.
        #[inline]
        pub fn $pow(x: $real, y: $real) -> $real {
            let a = x.abs();
            let (log, log_low) = log2_terms(a);
            // e = y log2 a
            let e = y * log;
            let e_low = fma(y, log_low, fma(y, log, -e));
            let (n, integer) = nearest(e, 1.0);
            let value = scale(exp2_reduced((e - n) + e_low), integer);
            let value = if e > $over { $real::INFINITY } else { value };
            let value = if e < -$under { 0.0 } else { value };

            // Special cases: 1 to an infinite power, 0 and infinity.
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
            let integer = crate::exact::$real::trunc(y) == y;
            let odd = integer && crate::exact::$real::trunc(0.5 * y) != 0.5 * y;
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

/// The argument's reduction by `π/2`: Cody and Waite's below `limit`, with the bits of the parts of
/// `π/2`, else that of `reduce_large`.
macro_rules! quarter_turns {
    ($real:ident: limit $limit:literal, parts $($part:literal)+) => {
        /// `(r, low)` with `x = n π/2 + r + low`. `n` is an integer, or an integer plus a half,
        /// that makes `|r|` at most a little over `π/4`. `low` is the rounding error of `r`, or 0
        /// without `LOW`.
        #[inline(always)]
        fn without_turns<const LOW: bool>(x: $real, n: $real) -> ($real, $real) {
            /// `π/2` in parts, each truncated: all are positive, so that -0 stays -0.
            const FRAC_PI_2: [$real; 3] = [$($real::from_bits($part)),+];
            // Exact: the first product cancels x's leading digits.
            let first = fma(n, -FRAC_PI_2[0], x);
            if LOW {
                let second = n * FRAC_PI_2[1];
                let r = first - second;
                let second_low = fma(n, FRAC_PI_2[1], -second);
                let low = (first - r) - second - second_low;
                let low = fma(n, -FRAC_PI_2[2], low);
                (r + low, r - (r + low) + low)
            } else {
                let r = fma(n, -FRAC_PI_2[1], first);
                (fma(n, -FRAC_PI_2[2], r), 0.0)
            }
        }

        /// `(r, low, q)` with `x = q π/2 + r + low`, where `q` is right modulo 4; `low` as in
        /// [`without_turns`].
        #[inline(always)]
        fn reduce<const LOW: bool>(x: $real) -> ($real, $real, i32) {
            if x.abs() < $limit {
                let (n, q) = nearest(x, core::$real::consts::FRAC_2_PI);
                let (r, low) = without_turns::<LOW>(x, n);
                (r, low, q)
            } else {
                reduce_large::<false>(x)
            }
        }

        /// `(r, low, q)` with `x = (q + 1/2) π/2 + r + low`, for `x` of at least 1.
        #[inline(always)]
        pub(super) fn reduce_odd(x: $real) -> ($real, $real, i32) {
            if x < $limit {
                let (n, q) = nearest(fma(x, core::$real::consts::FRAC_2_PI, -0.5), 1.0);
                let (r, low) = without_turns::<true>(x, n + 0.5);
                (r, low, q)
            } else {
                reduce_large::<true>(x)
            }
        }
    };
}
pub(super) use quarter_turns;

/// The inverse of the complementary error function, from `inverse` and a natural logarithm of
/// positive numbers.
macro_rules! inverse_of_tail {
    ($real:ident: $erfcinv:ident; $log:ident) => {
        /// The inverse of the complementary error function.
        #[inline]
        pub fn $erfcinv(y: $real) -> $real {
            inverse_of_tail(y).0
        }

        /// The inverse of the complementary error function as the sum of two floats.
        #[inline(always)]
        fn inverse_of_tail(y: $real) -> ($real, $real) {
            let x = 1.0 - y;
            let product = y * (2.0 - y);
            let (value, low) = inverse(-$log(product), x, (1.0 - x) - y);
            if product == 0.0 {
                ($real::INFINITY.copysign(x), 0.0)
            } else {
                (value, low)
            }
        }
    };
}
pub(super) use inverse_of_tail;

/// Bessel functions, by the rows of `J0`, `J1`, `Y0` and `Y1`. `first` and `second` are the indices
/// of a row's coefficients from the second on, for functions of the first and the second kind. The
/// far formulas multiply an argument above `big` by `down`, whose square root is `up`. A continued
/// fraction ends where its denominator exceeds `enough`.
macro_rules! bessel {
    ($real:ident: $j0:ident, $j1:ident, $jn:ident, $y0:ident, $y1:ident, $yn:ident;
     first $($first:literal)+, second $($second:literal)+,
     big $big:literal, down $down:literal, up $up:literal, tiny $tiny:literal, back $back:literal, enough $enough:literal) => {
        /// The index of the row for `x`, one for each half period: `x/π + offset`, rounded to
        /// nearest.
        #[inline(always)]
        fn row(x: $real, offset: $real) -> usize {
            nearest(fma(x, core::$real::consts::FRAC_1_PI, offset), 1.0).1 as usize
        }

        /// A function of the first kind by its row: a centre, the value there, and the coefficients
        /// of the difference from that value divided by the distance, the lowest as the sum of two
        /// floats.
        #[inline(always)]
        fn first_by_row<const N: usize>(x: $real, row: &[$real; N]) -> $real {
            let d = x - row[0];
            by_row(d, polynomial!(d; $(row[$first]),+), [row[1], row[2], row[3]])
        }

        /// A function of the second kind by its row.
        #[inline(always)]
        fn second_by_row<const N: usize>(x: $real, row: &[$real; N]) -> $real {
            let d = x - row[0];
            by_row(d, polynomial!(d; $(row[$second]),+), [row[1], row[2], row[3]])
        }

        /// `value + d (slope + slope_low + d p)`
        #[inline(always)]
        fn by_row(d: $real, p: $real, [value, slope_low, slope]: [$real; 3]) -> $real {
            let (q, q_low) = fma_of_sum(p, d, [slope, slope_low]);
            fma(q, d, fma(q_low, d, value))
        }

        /// `√(2/(π x)) b sin(x - π/4 + turns π/2 + a)`, for large `x`: a function of order 0, or 1
        /// if `one`, by the amplitude `b` and the phase `a` of that order. Near zeros of the sine
        /// its argument must be accurate: it is a sum of two floats throughout.
        #[inline(always)]
        fn far(x: $real, turns: i32, one: bool) -> $real {
            let (r, r_low, q) = reduce_odd(x);
            let q = q.wrapping_add(turns);
            let big = x > $big;
            let scaled = if big { x * $down } else { x };
            let s = divide(1.0, scaled);
            let s_low = s * fma(-s, scaled, 1.0);
            let u = if big { 0.0 } else { s * s };
            let u_low = fma(s, s, -u) + 2.0 * (s * s_low);

            // a = c s + s u p(u)
            let more = phase_rest(u, one);
            let (p, p_low) = fma_of_sum(u, more, PHASE[usize::from(one)]);
            let t = u * s;
            let t_low = fma(u, s, -t) + fma(u_low, s, u * s_low);
            let w = t * p;
            let w_low = fma(t, p, -w) + fma(t, p_low, t_low * p);
            let c = if one { 0.375 } else { -0.125 };
            let a = c * s;
            let a_low = fma(c, s, -a) + fma(c, s_low, w_low);
            let phase = a + w;
            let phase_low = (a - phase) + w + a_low;
            let (phase, phase_low) = if big { (0.0, 0.0) } else { (phase, phase_low) };

            let sum = r + phase;
            let part = sum - r;
            let low = (r - (sum - part)) + (phase - part) + (phase_low + r_low);
            let z = sum + low;
            let z_low = (sum - z) + low;

            // The sine, or the cosine, as a sum of two floats.
            let odd = q & 1 != 0;
            let square = z * z;
            let p = series(square, odd);
            let high = if odd { 1.0 } else { z };
            let low = if odd {
                fma(square, p, -z * z_low)
            } else {
                fma(z * square, p, z_low)
            };

            // √s, and the amplitude.
            let root = root(s);
            let root_low = (fma(-root, root, s) + s_low) * (0.5 * root * scaled);
            let b_low = fma(u, amplitude_rest(u, one), AMPLITUDE[1]);
            let c = root * AMPLITUDE[0];
            let c_low = fma(root, AMPLITUDE[0], -c) + fma(root, b_low, root_low * AMPLITUDE[0]);
            let value = c * high;
            let value_low = fma(c, high, -value) + fma(c, low, c_low * (high + low));
            let value = value + value_low;
            let value = if big { value * $up } else { value };
            let value = if q & 2 == 0 { value } else { -value };
            if x == $real::INFINITY { 0.0 } else { value }
        }

        /// `2/π ln x`, for positive `x`, as the sum of two floats.
        #[inline(always)]
        fn log_terms(x: $real) -> ($real, $real) {
            let (f, k) = split(x, TWO_THIRDS);
            let rest = fma(log1p_rest(f), FRAC_2_PI[0], fma(f, FRAC_2_PI[1], k * LOG_2[1]));
            (k * LOG_2[0], fma(f, FRAC_2_PI[0], rest))
        }

        /// The Bessel function of the first kind of order 0.
        #[inline]
        pub fn $j0(x: $real) -> $real {
            let x = x.abs();
            if x < 25.9 {
                // SAFETY: there are nine rows, each π wide. The first ends at π/4.
                first_by_row(x, unsafe { J0.get_unchecked(row(x, 0.25)) })
            } else {
                far(x, 1, false)
            }
        }

        /// The Bessel function of the first kind of order 1.
        #[inline]
        pub fn $j1(x: $real) -> $real {
            let a = x.abs();
            let value = if a < 25.9 {
                // SAFETY: there are nine rows, each π wide. The first ends at 3π/4.
                first_by_row(a, unsafe { J1.get_unchecked(row(a, -0.25)) })
            } else {
                far(a, 0, true)
            };
            if x.is_sign_negative() { -value } else { value }
        }

        /// `value` for a positive `x`: functions of the second kind have a pole at 0, and are NaN
        /// below.
        #[inline(always)]
        fn from_zero_on(x: $real, value: $real) -> $real {
            match (x == 0.0, x < 0.0) {
                (true, _) => $real::NEG_INFINITY,
                (_, true) => $real::NAN,
                _ => value,
            }
        }

        /// The Bessel function of the second kind of order 0.
        #[inline]
        pub fn $y0(x: $real) -> $real {
            if x < 0.6 {
                let (high, low) = log_terms(x);
                let u = x * x;
                let j = j0_rest(u) * u;
                let value = high + (low + fma(high, j, fma(low, j, y0_regular(u))));
                return from_zero_on(x, value);
            }
            if x < 25.9 {
                let index = if x < 1.25 { 0 } else { row(x, -0.25).wrapping_add(1) };
                // SAFETY: there are ten rows, the first two up to 3π/4, the others each π wide.
                second_by_row(x, unsafe { Y0.get_unchecked(index) })
            } else {
                far(x, 0, false)
            }
        }

        /// The Bessel function of the second kind of order 1.
        #[inline]
        pub fn $y1(x: $real) -> $real {
            if x < 1.6 {
                let (high, low) = log_terms(x);
                let u = x * x;
                let rest = fma(high + low, j1_over_x(u), y1_regular(u)) * x;
                // 2/(π x): the quotient, and its rounding error.
                let small = x < $tiny;
                let scaled = if small { x * $back } else { x };
                let q = divide(FRAC_2_PI[0], scaled);
                let q_low = (fma(-q, scaled, FRAC_2_PI[0]) + FRAC_2_PI[1]) * (q * core::$real::consts::FRAC_PI_2);
                let value = if small { (-q - q_low) * $back } else { (rest - q_low) - q };
                return from_zero_on(x, value);
            }
            if x < 25.9 {
                let index = if x < 3.0 { 0 } else { row(x, -0.75).wrapping_add(1) };
                // SAFETY: there are nine rows, the first two up to 5π/4, the others each π wide.
                second_by_row(x, unsafe { Y1.get_unchecked(index) })
            } else {
                far(x, -1, true)
            }
        }

        /// The Bessel function of the first kind of order `n`: by the recurrence upwards to the
        /// order next to `x`, and from there by the quotients of neighbouring orders, a continued
        /// fraction (W. Gautschi, "Computational Aspects of Three-Term Recurrence Relations",
        /// 1967).
        #[inline]
        pub fn $jn(n: i32, x: $real) -> $real {
            let a = x.abs();
            let order = n.unsigned_abs();
            let (mut before, mut value) = ($j0(a), $j1(a));
            if order == 0 {
                return before;
            }
            let step = 2.0 / a;
            let mut k = 1_u32;
            while k < order && (k as $real) < a {
                (before, value) = (value, fma(k as $real * step, value, -before));
                k = k.wrapping_add(1);
            }
            if k < order {
                // The quotients of orders above the `last` found here are negligible.
                let (mut p, mut q, mut last) = (1.0, order as $real * step, order);
                while q < $enough {
                    last = last.wrapping_add(1);
                    (p, q) = (q, fma(last as $real * step, q, -p));
                }
                let mut quotient = 0.0;
                while last > k && value != 0.0 {
                    quotient = 1.0 / fma(last as $real, step, -quotient);
                    if last <= order {
                        value *= quotient;
                    }
                    last = last.wrapping_sub(1);
                }
            }
            let value = if a == 0.0 { 0.0 } else { value };
            // J of -n, and of -x, has the sign (-1)^n.
            let odd = order & 1 == 1;
            if odd && (n < 0) != x.is_sign_negative() { -value } else { value }
        }

        /// The Bessel function of the second kind of order `n`, by the recurrence.
        #[inline]
        pub fn $yn(n: i32, x: $real) -> $real {
            let order = n.unsigned_abs();
            let (mut before, mut value) = ($y0(x), $y1(x));
            if order == 0 {
                return before;
            }
            let step = 2.0 / x;
            let mut k = 1_u32;
            while k < order && value > $real::NEG_INFINITY {
                (before, value) = (value, fma(k as $real * step, value, -before));
                k = k.wrapping_add(1);
            }
            if n < 0 && order & 1 == 1 { -value } else { value }
        }
    };
}
pub(super) use bessel;

/// The gamma function, and Stirling's formula for it. Beyond `limit` it overflows; an `x` with
/// `|x|` below `tiny` is multiplied by `back`.
macro_rules! gamma {
    ($real:ident: $tgamma:ident; limit $limit:literal, tiny $tiny:literal, back $back:literal) => {
        /// `(e, e_low, s)` with `Γ(y + y_low) = 2^(e + e_low) c(s)`, for `y` from 1 on: `c` is near
        /// `√(2π)`, and `s` is `1/y`, of `y` up to `LARGE`.
        #[inline(always)]
        fn stirling(y: $real, y_low: $real) -> ($real, $real, $real) {
            const LARGE: $real = (1_u64 << 40) as $real;
            let (log, log_low) = log2_terms(y);
            let s = divide(1.0, if y > LARGE { LARGE } else { y });
            // (y - 1/2) log2 y - y log2 e
            let p = y - 0.5;
            let first = p * log;
            let first_low = fma(p, log, -first) + p * log_low;
            let second = y * LOG2_E[0];
            let second_low = fma(y, LOG2_E[0], -second) + y * LOG2_E[1];
            let e = first - second;
            let part = e - first;
            let low = (first - (e - part)) - (second + part);
            // The slope, without the terms that are negligible because y_low is small.
            let slope = fma(-s, 0.5 * core::$real::consts::LOG2_E, log);
            (e, fma(y_low, slope, low + (first_low - second_low)), s)
        }

        /// `(e + e_low) ln 2 + ln √(2π) + more`, plus the series in `s`: the logarithm of the gamma
        /// function by [`stirling`]'s formula, from 3 on.
        #[inline(always)]
        fn by_stirling(e: $real, e_low: $real, s: $real, more: $real) -> $real {
            let more = fma(log_series(s * s), s, more);
            let value = e * LN_2[0];
            let value_low = fma(e, LN_2[0], -value) + fma(e, LN_2[1], e_low * LN_2[0]);
            value + (LN_SQRT_2_PI[0] + (LN_SQRT_2_PI[1] + more + value_low))
        }

        /// `1 + a`, and its rounding error.
        #[inline(always)]
        fn one_more(a: $real) -> ($real, $real) {
            let sum = 1.0 + a;
            (
                sum,
                if a > 1.0 {
                    1.0 - (sum - a)
                } else {
                    a - (sum - 1.0)
                },
            )
        }

        /// `sin πr / πr - 1` as the sum of two floats, for `|r|` up to a half.
        #[inline(always)]
        fn sine_terms(r: $real) -> ($real, $real) {
            let u = r * r;
            let rest = sine_rest(u);
            let (p, p_low) = fma_of_sum(u, rest, SINE);
            let v = p * u;
            (v, fma(p, u, -v) + fma(p_low, u, p * fma(r, r, -u)))
        }

        /// The gamma function: below 1 by `Γ(1 + x) / x` and `Γ(-x) = -π / (sin πx Γ(1 + x))`.
        #[inline]
        pub fn $tgamma(x: $real) -> $real {
            let a = x.abs();
            let above = x >= 1.0;
            let (y, y_low) = one_more(a);
            let (y, y_low) = if above { (x, 0.0) } else { (y, y_low) };
            let y = if y > $limit { $limit } else { y };
            let (e, e_low, s) = stirling(y, y_low);
            let (n, integer) = nearest(e, 1.0);
            let f = e - n;
            let r = f + e_low;
            let r_low = (f - r) + e_low;
            // 2^r - 1 as the sum of two floats.
            let rest = exp2_rest(r);
            let (p, p_low) = fma_of_sum(rest, r, LN_2);
            let small = p * r;
            let small_low = fma(p, r, -small) + fma(p_low, r, p * r_low);
            let series = stirling_series(s);
            let (c, c_low) = fma_of_sum(s, series, SQRT_2_PI);
            let more = fma(c, small, fma(c, small_low, c_low));
            let value = c + more;
            if above {
                return scale(value, integer);
            }
            let value_low = (c - value) + more;
            let tiny = a < $tiny;
            let factor = if tiny { $back } else { 1.0 };
            if x > 0.0 {
                let b = x * factor;
                let inverse = divide(1.0, b);
                let q = value * inverse;
                let q_low = (fma(-q, b, value) + value_low) * inverse;
                return scale(q + q_low, integer) * factor;
            }
            // a = n + r
            let period = fma(-2.0, crate::exact::$real::trunc(0.5 * a), a);
            let (n, turns) = nearest(period, 1.0);
            let r = period - n;
            let (v, v_low) = sine_terms(r);
            let g = 1.0 + v;
            let g_low = (1.0 - g) + v + v_low;
            let d = value * g;
            let d_low = fma(value, g, -d) + fma(value, g_low, value_low * g);
            let b = r * factor;
            let h = d * b;
            let h_low = fma(d, b, -h) + d_low * b;
            let q = divide(1.0, h);
            let rest = fma(-q, h, 1.0) - h_low * q;
            let value = scale(fma(rest, q, q), integer.wrapping_neg()) * factor;
            let value = if turns & 1 == 0 { -value } else { value };
            let value = if r == 0.0 { $real::NAN } else { value };
            if x == 0.0 {
                $real::INFINITY.copysign(x)
            } else {
                value
            }
        }
    };
}
pub(super) use gamma;
