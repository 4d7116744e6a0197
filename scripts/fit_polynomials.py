#!/usr/bin/env python3
"""Fits the minimax polynomials of compiler/codegen/vector_math.cc and prints them as C++ tables.

Job: Remez exchange in 60-digit arithmetic on each function below, weighted so that the relative error of the final
result is what is minimised; on one-sided intervals the coefficients are rounded to the table's precision one after the
other, lowest degree first, with the rest fitted again, so that rounding costs almost nothing. Needs mpmath. Nothing
reads its output but people: it documents where the numbers come from."""
import struct

import mpmath as mp

mp.mp.dps = 60


def to_float32(x):
    return mp.mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def to_float64(x):
    return mp.mpf(float(x))


def remez(f, weight, lo, hi, degree):
    """Coefficients c with max |weight(x) * (f(x) - sum c_i x^i)| smallest on [lo, hi]."""
    n = degree + 2
    xs = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]
    for _ in range(12):
        rows = mp.matrix(n, n)
        rhs = mp.matrix(n, 1)
        for i, x in enumerate(xs):
            for j in range(degree + 1):
                rows[i, j] = x ** j
            rows[i, n - 1] = (-1) ** i / weight(x)
            rhs[i] = f(x)
        c = mp.lu_solve(rows, rhs)
        coefficients = [c[j] for j in range(degree + 1)]
        error = lambda x: weight(x) * (f(x) - mp.polyval(coefficients[::-1], x))
        grid = [lo + (hi - lo) * i / (40 * n) for i in range(40 * n + 1)]
        values = [error(x) for x in grid]
        extrema = []
        for i, v in enumerate(values):
            left = values[i - 1] if i else None
            right = values[i + 1] if i + 1 < len(values) else None
            peaks = lambda beside: beside is None or abs(v) >= abs(beside) or v * beside < 0
            if peaks(left) and peaks(right):
                if extrema and extrema[-1][1] * v > 0:
                    if abs(v) > abs(extrema[-1][1]):
                        extrema[-1] = (grid[i], v)
                else:
                    extrema.append((grid[i], v))
        while len(extrema) > n:
            extrema.pop(0 if abs(extrema[0][1]) < abs(extrema[-1][1]) else -1)
        if len(extrema) < n:
            break
        xs = [x for x, _ in extrema]
    return coefficients, max(abs(v) for v in values)


def fit(name, f, weight, lo, hi, degree, rounding):
    if lo == 0:
        lo = hi / 1000  # keeps clear of the removable singularity
    fixed = []
    for k in range(degree + 1):
        head = list(fixed)
        rest = lambda x: (f(x) - mp.polyval(head[::-1], x)) / x**k if head else f(x)
        coefficients, _ = remez(rest, lambda x: weight(x) * x**k, lo, hi, degree - k)
        if lo < 0:  # both signs: dividing by x^k would meet zero, so the rest is rounded as it is
            fixed = [rounding(c) for c in coefficients]
            break
        fixed.append(rounding(coefficients[0]))
    grid = [lo + (hi - lo) * i / 2000 for i in range(2001)]
    worst = max(abs(weight(x) * (f(x) - mp.polyval(fixed[::-1], x))) for x in grid)
    digits = 9 if rounding is to_float32 else 17
    print(f"// {name}: degree {degree} on [{mp.nstr(lo, 6)}, {mp.nstr(hi, 6)}], error 2^{mp.nstr(mp.log(worst, 2), 4)}")
    print("{" + ", ".join(mp.nstr(c, digits) for c in fixed) + "},", flush=True)


def main():
    tiny = mp.mpf(10) ** -12
    half_ln2 = mp.log(2) / 2 * mp.mpf("1.002")
    exp_tail = lambda r: (mp.expm1(r) - r) / r ** 2 if abs(r) > tiny else mp.mpf(1) / 2 + r / 6
    log_tail = lambda f: (mp.log1p(f) - f + f * f / 2) / f ** 3 if abs(f) > tiny else mp.mpf(1) / 3 - f / 4
    # log(1 + f) = 2 s + s z Q(z), s = f / (2 + f), z = s^2
    def atanh_tail(z):
        if z < tiny:
            return mp.mpf(2) / 3 + 2 * z / 5
        s = mp.sqrt(z)
        return (2 * mp.atanh(s) - 2 * s) / (s * z)
    def sin_tail(z):
        if z < tiny:
            return -mp.mpf(1) / 6 + z / 120
        x = mp.sqrt(z)
        return (mp.sin(x) - x) / (x * z)
    def cos_tail(z):
        if z < tiny:
            return mp.mpf(1) / 24 - z / 720
        return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z ** 2
    def erf_tail(z):
        if z < tiny:
            return 2 / mp.sqrt(mp.pi) * (1 - z / 3)
        x = mp.sqrt(z)
        return mp.erf(x) / x
    def atan_tail(z):
        if z < tiny:
            return -mp.mpf(1) / 3 + z / 5
        x = mp.sqrt(z)
        return (mp.atan(x) - x) / (x * z)
    def asin_tail(z):
        if z < tiny:
            return mp.mpf(1) / 6 + 3 * z / 40
        x = mp.sqrt(z)
        return (mp.asin(x) - x) / (x * z)
    log_erfc = lambda c: lambda t: mp.log(mp.erfc(t + c))
    lo, hi = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1
    quarter = (mp.pi / 4) ** 2 * mp.mpf("1.01")
    smax = (hi / (2 + hi)) ** 2 * mp.mpf("1.001")
    for kind, rounding, degrees in (("float32", to_float32, ((3, 4), 7, None, 3, 3, 7, (9,))),
                                    ("float64", to_float64, ((10,), None, 7, 7, 7, 14, (22,)))):
        print("//", kind)
        for degree in degrees[0]:  # the shortest for exp, the next for expm1
            fit("exp(r) = 1 + r + r^2 P(r)", exp_tail, lambda r: r * r + tiny, -half_ln2, half_ln2, degree, rounding)
        if degrees[1]:
            fit("log(1 + f) = f - f^2/2 + f^3 P(f)", log_tail, lambda f: f * f + tiny, lo, hi, degrees[1], rounding)
        if degrees[2]:
            fit("log(1 + f) = 2 s + s z P(z)", atanh_tail, lambda z: z, mp.mpf(0), smax, degrees[2], rounding)
        fit("sin(x) = x + x z P(z)", sin_tail, lambda z: z, mp.mpf(0), quarter, degrees[3], rounding)
        fit("cos(x) = 1 - z/2 + z^2 P(z)", cos_tail, lambda z: z * z, mp.mpf(0), quarter, degrees[4], rounding)
        fit("erf(x) = x P(z), |x| < 1", erf_tail, lambda z: 1, mp.mpf(0), mp.mpf(1), degrees[5], rounding)
        center = mp.mpf("2.5") if kind == "float32" else mp.mpf("3.5")
        top = mp.mpf("4.0") if kind == "float32" else mp.mpf("6.0")
        fit(f"log(erfc(a)) = P(a - {center})", log_erfc(center), lambda t: mp.erfc(t + center), 1 - center,
            top - center, degrees[6][0], rounding)
    eighth = (mp.sqrt(2) - 1) ** 2 * mp.mpf("1.001")  # tan(pi / 8)^2
    fit("atan(x) = x + x z P(z)", atan_tail, lambda z: z, mp.mpf(0), eighth, 10, to_float64)
    fit("asin(x) = x + x z P(z)", asin_tail, lambda z: z, mp.mpf(0), mp.mpf("0.25"), 13, to_float64)


if __name__ == "__main__":
    main()
