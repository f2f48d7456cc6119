import assert from 'node:assert/strict'

// Reports compared: counts to the last unit, sums of floating-point numbers to six digits.

/** What a report measured, without how it was made. Losses differ in the last bits between kinds of processors. */
export function numbersOf(report) {
  const short = loss => loss && JSON.parse(JSON.stringify(loss, (_, value) => typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value))
  return report.evaluations.map(({ loss, ...counts }) => ({ ...counts, loss: short(loss) }))
}

/**
 * Holds the page's report to the command line's: baselines to the last unit, networks but for near ties of logits, which fall
 * otherwise where processors round otherwise: in one of a thousand steps at most.
 */
export function assertAlike(page, native) {
  assert.equal(page.evaluations.length, native.evaluations.length)
  const networks = new Set(native.trackers.filter(tracker => tracker.kind === 'model').map(({ name }) => name))
  assert.ok(networks.size > 0, 'a network')
  const ours = numbersOf(page), theirs = numbersOf(native)
  ours.forEach((mine, i) => {
    const other = theirs[i]
    const what = `${other.tracker} on ${other.dataset}`
    if (!networks.has(other.tracker)) return assert.deepEqual(mine, other, what)
    for (const key of ['tracker', 'dataset', 'games', 'steps', 'complete', 'moves_sha256', 'non_finite_steps']) assert.deepEqual(mine[key], other[key], `${what}: ${key}`)
    const ties = Math.ceil(other.steps / 1000)
    const near = (a, b, name) => {
      assert.equal(a.denominator, b.denominator, `${what}: ${name}`)
      assert.ok(Math.abs(a.numerator - b.numerator) <= ties, `${what}: ${name}: ${a.numerator} and ${b.numerator} of ${b.denominator}`)
    }
    for (const share of ['exact_state_accuracy', 'labelwise_accuracy', 'trajectory_exactness']) near(mine[share], other[share], share)
    other.label_groups.forEach((group, g) => near(mine.label_groups[g].accuracy, group.accuracy, group.group))
    other.labels_right.forEach((right, label) => assert.ok(Math.abs(mine.labels_right[label] - right) <= ties, `${what}: label ${label}`))
    assert.ok(Math.abs(mine.loss.mean - other.loss.mean) <= 1e-4 * other.loss.mean, `${what}: loss ${mine.loss.mean} and ${other.loss.mean}`)
  })
}
