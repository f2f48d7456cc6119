// Reports compared: counts to the last unit, sums of floating-point numbers to six digits.

/** What a report measured, without how it was made. Losses differ in the last bits between kinds of processors. */
export function numbersOf(report) {
  const short = loss => loss && JSON.parse(JSON.stringify(loss, (_, value) => typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value))
  return report.evaluations.map(({ loss, ...counts }) => ({ ...counts, loss: short(loss) }))
}
