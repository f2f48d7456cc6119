// A board: chessground draws pieces, a layer above it marks what is wrong and gives every square a name.
// Squares are numbered as labels are: 0 is a8, 63 is h1.
import { Chessground } from '../vendor/chessground.js'
import { h, Memo, reducedMotion } from './dom.js'

const nameOf = label => 'abcdefgh'[label % 8] + (8 - Math.floor(label / 8))

const ROLES = { p: 'pawn', n: 'knight', b: 'bishop', r: 'rook', q: 'queen', k: 'king' }

/** A piece's picture, by FEN letter. */
export function pieceOf(letter) {
  if (!/[a-z]/i.test(letter)) return null
  const color = letter === letter.toUpperCase() ? 'white' : 'black'
  return h('piece', { class: `${color} ${ROLES[letter.toLowerCase()]}` })
}

export class Board {
  /**
   * @param root the element to fill
   * @param options `interactive`, `label`, `onMove(from, to)`, `onInspect(label or null)`, `onWheel(direction)`
   */
  constructor(root, options) {
    this.root = root
    this.options = options
    this.memo = new Memo()
    this.flipped = false
    this.focused = 60
    root.classList.add('board')
    this.ground = h('div', { class: 'ground' })
    this.cells = []
    this.grid = this.makeGrid()
    root.append(this.ground, this.grid)
    const { interactive } = options
    this.cg = Chessground(this.ground, {
      coordinates: false,
      viewOnly: !interactive,
      addPieceZIndex: false,
      drawable: { enabled: false, visible: false },
      premovable: { enabled: false },
      highlight: { lastMove: true, check: true },
      animation: { enabled: !reducedMotion(), duration: 160 },
      movable: {
        // Any move may be tried: the session says why one is not legal.
        free: true,
        color: 'both',
        showDests: true,
        rookCastle: false,
        events: { after: (from, to) => this.moved(from, to) },
      },
    })
    this.listen()
  }

  makeGrid() {
    const { interactive, label } = this.options
    const rows = []
    for (let row = 0; row < 8; row++) {
      const cells = []
      for (let column = 0; column < 8; column++) {
        const cell = h('div', { class: 'sq', role: interactive ? 'gridcell' : null, tabindex: interactive ? '-1' : null })
        cells.push(cell)
        this.cells.push(cell)
      }
      rows.push(h('div', { class: 'sq-row', role: interactive ? 'row' : null }, cells))
    }
    return h('div', { class: 'squares', role: interactive ? 'grid' : 'img', 'aria-label': label }, rows)
  }

  /** The cell that shows a label's square. */
  cell(label) {
    return this.cells[this.flipped ? 63 - label : label]
  }

  labelOf(cell) {
    const at = this.cells.indexOf(cell)
    return at < 0 ? null : this.flipped ? 63 - at : at
  }

  labelAt(event) {
    const box = this.root.getBoundingClientRect()
    const column = Math.floor(((event.clientX - box.left) / box.width) * 8)
    const row = Math.floor(((event.clientY - box.top) / box.height) * 8)
    if (column < 0 || column > 7 || row < 0 || row > 7) return null
    const at = row * 8 + column
    return this.flipped ? 63 - at : at
  }

  listen() {
    const { onInspect, onWheel, interactive } = this.options
    const inspect = label => {
      if (label === this.inspected) return
      this.inspected = label
      onInspect(label)
    }
    this.root.addEventListener('pointermove', event => inspect(this.labelAt(event)))
    this.root.addEventListener('pointerleave', () => inspect(null))
    this.root.addEventListener('pointerdown', event => inspect(this.labelAt(event)))
    if (onWheel) {
      this.root.addEventListener('wheel', event => {
        if (event.ctrlKey) return
        event.preventDefault()
        this.turned = (this.turned ?? 0) + event.deltaY
        if (Math.abs(this.turned) < 40) return
        onWheel(Math.sign(this.turned))
        this.turned = 0
      }, { passive: false })
    }
    if (!interactive) return
    this.grid.addEventListener('keydown', event => this.key(event))
    this.grid.addEventListener('focusin', event => {
      const label = this.labelOf(event.target)
      if (label === null) return
      this.focused = label
      inspect(label)
    })
    this.grid.addEventListener('focusout', () => inspect(null))
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return
    const away = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -8, ArrowDown: 8 }[event.key]
    if (away) {
      event.preventDefault()
      event.stopPropagation()
      const at = this.cells.indexOf(event.target)
      const column = (at % 8) + (Math.abs(away) === 1 ? away : 0)
      const next = at + away
      if (next >= 0 && next < 64 && column >= 0 && column < 8) this.cells[next].focus()
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault()
      event.stopPropagation()
      const label = this.labelOf(event.target)
      if (label !== null) this.choose(nameOf(label))
    } else if (event.key === 'Escape') {
      this.cg.cancelMove()
      this.pick(null)
    }
  }

  /** Chooses a square by keyboard: first the piece, then where it goes. */
  choose(square) {
    if (this.picked && this.picked !== square) {
      const from = this.picked
      this.pick(null)
      this.moved(from, square)
    } else {
      this.pick(this.picked === square ? null : square)
    }
  }

  pick(square) {
    this.picked = square
    this.cg.selectSquare(square)
    this.cells.forEach((cell, at) => {
      const label = this.flipped ? 63 - at : at
      cell.classList.toggle('picked', nameOf(label) === square)
      if (this.options.interactive) cell.setAttribute('aria-selected', String(nameOf(label) === square))
    })
  }

  moved(from, to) {
    this.picked = null
    // Whatever the session decides, the board is drawn anew from its answer.
    this.memo.forget('pieces')
    this.options.onMove(from, to)
  }

  /**
   * Draws a position.
   * @param view `fen` (pieces), `flipped`, `turn`, `check`, `lastMove`, `destinations`, `wrong` (labels), `badges`
   *   (FEN letters by label, or `≠`), `words` (names of the squares), `lit` (a label), `alt` (for a board that is a picture)
   */
  render(view) {
    if (view.flipped !== this.flipped) {
      this.flipped = view.flipped
      this.memo.last.clear()
    }
    const wrong = (view.wrong ?? []).filter(label => label < 64)
    const pieces = [view.fen, view.flipped, view.turn, view.check, view.lastMove, view.destinations, wrong]
    if (this.memo.changed('pieces', pieces)) {
      this.cg.set({
        fen: view.fen,
        orientation: view.flipped ? 'black' : 'white',
        turnColor: view.turn,
        check: view.check ?? false,
        lastMove: view.lastMove ?? undefined,
        animation: { enabled: !reducedMotion() },
        highlight: { custom: new Map(wrong.map(label => [nameOf(label), 'wrong'])) },
        movable: { dests: new Map(view.destinations ?? []) },
      })
    }
    if (this.memo.changed('badges', [wrong, view.badges])) this.drawBadges(wrong, view.badges ?? {})
    if (view.words && this.memo.changed('words', view.words)) {
      view.words.forEach((text, label) => this.cell(label).setAttribute('aria-label', text))
    }
    if (view.alt) this.grid.setAttribute('aria-label', view.alt)
    if (this.memo.changed('lit', String(view.lit))) {
      this.cells.forEach(cell => cell.classList.remove('lit'))
      if (view.lit !== null && view.lit !== undefined && view.lit < 64) this.cell(view.lit).classList.add('lit')
    }
    if (this.options.interactive && this.memo.changed('stop', String(this.focused))) {
      this.cells.forEach(cell => (cell.tabIndex = -1))
      this.cell(this.focused).tabIndex = 0
    }
  }

  drawBadges(wrong, badges) {
    for (const cell of this.cells) cell.replaceChildren()
    for (const label of wrong) {
      const letter = badges[label]
      const piece = letter && letter !== '.' ? pieceOf(letter) : null
      const badge = h('span', { class: 'badge-chip cg-wrap', 'aria-hidden': 'true' }, piece ?? (letter === '.' ? '∅' : '≠'))
      this.cell(label).append(badge)
    }
  }
}

export { nameOf }
