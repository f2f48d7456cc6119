// The strip under the board: every step of every model, exact or not, and the slider over it.
import { h, Memo, s, say } from './dom.js'

// The height of a step's bar: one wrong label is already well visible, and 75 are not much more than 20.
const heightOf = wrong => (wrong === 0 ? 0 : 0.3 + 0.7 * Math.min(1, Math.log2(1 + wrong) / Math.log2(40)))

const verdictOf = ({ first_mistake, wrong }, steps) => {
  if (first_mistake) return `: first mistake at ply ${first_mistake.ply}, ${first_mistake.played}`
  if (wrong.length === 0) return ''
  return wrong.length < steps ? ': no mistake yet' : ': no mistake'
}

export class Timeline {
  constructor(root, onPly) {
    this.memo = new Memo()
    this.root = root
    this.slider = h('input', {
      type: 'range', min: '0', max: '0', value: '0', step: '1', id: 'ply', 'aria-label': 'Ply',
      on: { input: () => onPly(Number(this.slider.value)) },
    })
    this.rows = [this.makeRow(), this.makeRow()]
    this.place = h('output', { class: 'place', for: 'ply' })
    this.strips = h('div', { class: 'strips' }, this.rows.map(row => row.line), this.slider)
    root.append(this.place, this.strips)
  }

  makeRow() {
    const svg = s('svg', { class: 'strip', preserveAspectRatio: 'none', 'aria-hidden': 'true' })
    const name = h('p', { class: 'strip-name' })
    return { svg, name, line: h('div', { class: 'strip-line' }, name, h('div', { class: 'strip-box' }, svg, h('div', { class: 'cursor' }))) }
  }

  render(explore) {
    const { ply, plies, main, second } = explore
    const steps = plies + 1
    this.root.style.setProperty('--steps', steps)
    this.root.style.setProperty('--ply', ply)
    if (Number(this.slider.max) !== plies) this.slider.max = String(plies)
    if (Number(this.slider.value) !== ply) this.slider.value = String(ply)
    const verdicts = [main, second].filter(seat => seat?.exact === true || seat?.exact === false)
    const text = [`ply ${ply} of ${plies}, ${explore.played}`, ...verdicts.map(seat => `${seat.name} ${seat.verdict}`)].join('; ')
    if (this.slider.getAttribute('aria-valuetext') !== text) this.slider.setAttribute('aria-valuetext', text)
    say(this.place, ply === 0 ? `start · ply 0 of ${plies}` : `${explore.played} · ply ${ply} of ${plies}`)
    this.renderRow(0, main, steps)
    this.renderRow(1, second, steps)
  }

  renderRow(at, seat, steps) {
    const row = this.rows[at]
    row.line.hidden = !seat
    if (!seat) return
    say(row.name, `${seat.name ?? 'no model'}${verdictOf(seat, steps)}`)
    if (!this.memo.changed(`row${at}`, [seat.wrong, seat.inspected_wrong, steps])) return
    row.svg.setAttribute('viewBox', `0 0 ${steps} 10`)
    let exact = ''
    let bars = ''
    seat.wrong.forEach((wrong, step) => {
      if (wrong === 0) {
        exact += `M${step} 8h1v2h-1z`
      } else {
        const height = (heightOf(wrong) * 10).toFixed(2)
        bars += `M${step} ${(10 - height).toFixed(2)}h1v${height}h-1z`
      }
    })
    const open = seat.wrong.length < steps ? `M${seat.wrong.length} 9.4h${steps - seat.wrong.length}v.6h-${steps - seat.wrong.length}z` : ''
    const ticks = seat.inspected_wrong.map(step => `M${step} 0h1v1.6h-1z`).join('')
    row.svg.replaceChildren(
      s('path', { class: 'strip-open', d: open }),
      s('path', { class: 'strip-exact', d: exact }),
      s('path', { class: 'strip-wrong', d: bars }),
      s('path', { class: 'strip-ticks', d: ticks }),
    )
  }
}
