// The Explore page: boards, models, moves, labels, the input box.
import { Board } from './board.js'
import { byId, h, Memo, say } from './dom.js'
import { Timeline } from './timeline.js'

const fill = (select, groups, value) => {
  const options = groups.flatMap(([label, entries]) => {
    const made = entries.map(([id, text]) => h('option', { value: id }, text))
    return label ? [h('optgroup', { label }, made)] : made
  })
  select.replaceChildren(...options)
  select.value = value
}

/** Moves that are added to the list in one go. */
const MOVES_AT_ONCE = 120

export class Explore {
  constructor(session) {
    this.session = session
    this.memo = new Memo()
    this.buttons = []
    const go = to => session.do({ do: 'go', to })
    const inspect = label => session.do({ do: 'inspect', label })
    const onWheel = direction => go(direction > 0 ? 'next' : 'previous')
    this.board = new Board(byId('board'), {
      interactive: true, label: 'Board', onInspect: inspect, onWheel,
      onMove: (from, to) => session.do({ do: 'move', from, to }),
    })
    this.mini = new Board(byId('mini'), { interactive: false, label: 'Board of the model beside it', onInspect: inspect, onWheel })
    this.timeline = new Timeline(byId('timeline'), ply => go({ ply }))
    this.inspect = inspect
    this.listen(go)
  }

  listen(go) {
    const { session } = this
    const click = (id, work) => byId(id).addEventListener('click', work)
    for (const button of document.querySelectorAll('[data-go]')) {
      if ('repeat' in button.dataset) holdable(button, () => go(button.dataset.go))
      else button.addEventListener('click', () => go(button.dataset.go))
    }
    for (const button of document.querySelectorAll('[data-copy]')) {
      button.addEventListener('click', () => session.do({ do: 'copy', what: button.dataset.copy }))
    }
    byId('views').addEventListener('change', event => session.do({ do: 'view', view: event.target.value }))
    click('flip', () => session.do({ do: 'flip' }))
    click('gallery', () => session.do({ do: 'dialog', dialog: 'gallery' }))
    click('legal', () => session.do({ do: 'enter_legal' }))
    click('open', () => byId('file').click())
    click('paste', () => this.paste())
    byId('pick-main').addEventListener('change', event => session.do({ do: 'model', lane: 'main', name: event.target.value }))
    byId('pick-second').addEventListener('change', event => {
      session.do({ do: 'model', lane: 'second', name: event.target.value || null })
    })
    byId('random').addEventListener('submit', event => {
      event.preventDefault()
      session.do({ do: 'random', seed: byId('seed').value.trim() || null, policy: byId('policy').value })
    })
    this.listenToText()
    byId('moves').addEventListener('click', event => {
      const ply = event.target.closest('button')?.dataset.ply
      if (ply) go({ ply: Number(ply) })
    })
    const labels = byId('labels')
    const ofRow = event => {
      const row = event.target.closest?.('tr[data-label]')
      return row ? Number(row.dataset.label) : null
    }
    labels.addEventListener('pointerover', event => this.inspect(ofRow(event)))
    labels.addEventListener('pointerleave', () => this.inspect(null))
    labels.addEventListener('focusin', event => this.inspect(ofRow(event)))
    labels.addEventListener('focusout', () => this.inspect(null))
  }

  listenToText() {
    const text = byId('text')
    const grow = () => {
      text.rows = Math.min(8, text.value.split('\n').length)
    }
    const enter = () => {
      this.session.do({ do: 'enter', text: text.value })
      grow()
    }
    let typing = 0
    text.addEventListener('input', () => {
      grow()
      clearTimeout(typing)
      typing = setTimeout(() => this.session.do({ do: 'typed', text: text.value }), 120)
    })
    text.addEventListener('keydown', event => {
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault()
        clearTimeout(typing)
        enter()
      }
    })
    byId('entry').addEventListener('submit', event => {
      event.preventDefault()
      clearTimeout(typing)
      enter()
    })
    this.enter = value => {
      text.value = value
      enter()
    }
  }

  async paste() {
    try {
      this.enter(await navigator.clipboard.readText())
    } catch {
      byId('text').focus()
      this.session.hooks.toast({ level: 'note', text: 'paste with the keyboard here', hint: 'the browser does not hand over the clipboard' })
    }
  }

  render(view) {
    const { explore } = view
    if (!explore) return
    if (view.line) this.renderLine(view.line, explore)
    this.renderModels(view, explore)
    this.renderBoards(explore)
    this.timeline.render(explore)
    this.renderMoves(explore)
    this.renderLabels(explore)
    this.renderInspector(explore)
    this.renderEntry(explore)
    say(byId('lede'), explore.lede)
  }

  renderLine(line) {
    say(byId('game-title'), line.title)
    say(byId('game-about'), line.about)
    this.buttons = []
    const list = byId('moves')
    list.replaceChildren()
    if (line.sans.length === 0) list.append(h('li', { class: 'muted' }, 'no moves yet'))
    this.appendMoves(line, 0)
    if (line.origin.from === 'random') {
      byId('seed').value = ''
      byId('seed').placeholder = line.origin.seed
    }
  }

  // Long games are appended in slices, so that nothing else has to wait.
  appendMoves(line, from) {
    const to = Math.min(from + MOVES_AT_ONCE, line.sans.length)
    const list = byId('moves')
    for (let at = from; at < to; at++) {
      if (at % 2 === 0) list.append(h('li', {}, h('span', { class: 'number', 'aria-hidden': 'true' }, `${at / 2 + 1}.`)))
      const button = h('button', { type: 'button', class: 'move', tabindex: '-1', data: { ply: String(at + 1) } }, line.sans[at])
      this.buttons.push(button)
      list.lastChild.append(button)
    }
    this.memo.forget('moves')
    clearTimeout(this.appending)
    if (to < line.sans.length) {
      this.appending = setTimeout(() => {
        this.appendMoves(line, to)
        this.session.schedule()
      })
    } else if (line.result !== '*') {
      list.append(h('li', { class: 'result' }, line.result))
    }
  }

  renderModels(view, explore) {
    if (this.memo.changed('choices', [view.models, explore.main.name, explore.second?.name])) {
      const entry = model => [model.name, `${model.name} (${model.about})`]
      const networks = view.models.filter(model => !model.baseline).map(entry)
      const baselines = view.models.filter(model => model.baseline).map(entry)
      const groups = [['Networks', networks], ['Baselines', baselines]]
      fill(byId('pick-main'), groups, explore.main.name ?? '')
      fill(byId('pick-second'), [['', [['', 'nothing']]], ...groups], explore.second?.name ?? '')
    }
    this.renderModel('main', explore.main)
    this.renderModel('second', explore.second)
  }

  renderModel(lane, seat) {
    const root = byId(`model-${lane}`)
    const part = name => root.querySelector(`.${name}`)
    root.classList.toggle('empty', !seat)
    say(part('model-about'), seat?.about ?? '')
    const verdict = part('verdict')
    const shown = seat && seat.exact !== null
    verdict.dataset.exact = shown ? String(seat.exact) : ''
    say(verdict, shown ? `${seat.exact ? '=' : '≠'} ${seat.verdict}` : seat?.loading ? '' : seat ? '…' : '')
    say(part('summary'), shown ? seat.summary : '')
    const loading = part('loading')
    loading.hidden = !seat?.loading
    if (seat?.loading && this.memo.changed(`loading-${lane}`, seat.loading)) {
      const { name, text, fraction } = seat.loading
      const bar = h('progress', { max: '1', 'aria-label': `loading ${name}` })
      if (fraction !== null) bar.value = fraction
      loading.replaceChildren(bar, h('span', {}, `${name}: ${text}`))
    }
    const trouble = part('trouble')
    trouble.hidden = !(seat?.fault)
    if (seat?.fault && this.memo.changed(`fault-${lane}`, [seat.fault, seat.crashed])) {
      const again = h('button', {
        type: 'button',
        on: {
          click: () => this.session.do(seat.crashed ? { do: 'restart', lane } : { do: 'model', lane, name: seat.name ?? byId(`pick-${lane}`).value }),
        },
      }, seat.crashed ? 'Restart engine' : 'Try again')
      trouble.replaceChildren(h('p', {}, h('strong', {}, seat.fault.message), ` ${seat.fault.hint} `, h('span', { class: 'muted' }, seat.fault.code)), again)
    }
  }

  renderBoards(explore) {
    const { main, view, squares } = explore
    const input = document.querySelector(`#views input[value="${view}"]`)
    if (input && !input.checked) input.checked = true
    const answered = main.exact !== null
    const modelShown = view === 'model' && answered && main.board
    const wrong = view === 'truth' || !answered ? [] : main.wrong_labels
    // Where a square is wrong, its corner holds what the other side says.
    const other = modelShown ? squares : main.squares
    const position = {
      flipped: explore.flipped, turn: explore.turn, check: explore.check ? explore.turn : false,
      lastMove: explore.last_move, lit: explore.inspected?.label ?? null,
    }
    this.board.render({
      ...position, wrong, words: explore.square_words, destinations: explore.destinations,
      fen: modelShown ? main.board : explore.fen.split(' ')[0],
      badges: Object.fromEntries(wrong.filter(label => label < 64).map(label => [label, other[label]])),
    })
    byId('board').classList.toggle('exact', main.exact === true && view !== 'truth')
    const second = explore.second
    const box = byId('mini')
    box.hidden = !second?.board
    if (!second?.board) return
    const drifted = second.wrong_labels.filter(label => label < 64)
    this.mini.render({
      ...position, fen: second.board, wrong: second.wrong_labels, check: false,
      badges: Object.fromEntries(drifted.map(label => [label, squares[label]])),
      alt: `The board as ${second.name} sees it: ${second.verdict}`,
    })
  }

  renderMoves(explore) {
    const { ply, main, second } = explore
    if (!this.memo.changed('moves', [ply, main.wrong, second?.wrong])) return
    const wrongOf = seat => at => (seat?.wrong[at] ?? 0) > 0
    const [mainWrong, secondWrong] = [wrongOf(main), wrongOf(second)]
    this.buttons.forEach((button, at) => {
      const step = at + 1
      button.classList.toggle('main-wrong', mainWrong(step))
      button.classList.toggle('second-wrong', secondWrong(step))
      if (step === ply) button.setAttribute('aria-current', 'true')
      else button.removeAttribute('aria-current')
    })
    const list = byId('moves')
    const current = this.buttons[ply - 1]
    if (!current) list.scrollTop = 0
    else if (current.offsetTop < list.scrollTop || current.offsetTop + current.offsetHeight > list.scrollTop + list.clientHeight) {
      list.scrollTop = current.offsetTop - list.clientHeight / 2
    }
  }

  renderLabels(explore) {
    const { main, second, inspected } = explore
    const rows = [main.name, main.labels, second?.name, second?.labels]
    if (this.memo.changed('labels', rows)) {
      const cell = (row, seat) => {
        if (!seat) return null
        const sure = row.percent ? h('span', { class: 'sure' }, row.percent) : null
        return h('td', { class: row.wrong ? 'is-wrong' : null }, row.wrong ? h('span', { class: 'hidden' }, 'wrong: ') : null, row.model, ' ', sure)
      }
      const head = name => (name ? h('th', { scope: 'col' }, name) : null)
      const body = main.labels.map((row, at) => h('tr', { data: { label: String(row.label) } },
        h('th', { scope: 'row' }, h('button', { type: 'button', class: 'bare' }, row.title)),
        h('td', {}, row.truth), cell(row, main), cell(second?.labels[at], second)))
      const table = byId('labels')
      const focused = document.activeElement?.closest('tr[data-label]')?.dataset.label
      table.replaceChildren(
        h('caption', { class: 'hidden' }, 'Labels that are no squares: truth, what the models say, and how sure they are'),
        h('thead', {}, h('tr', {}, h('td', {}), h('th', { scope: 'col' }, 'Truth'), head(main.name), head(second?.name))),
        h('tbody', {}, body))
      if (focused) table.querySelector(`tr[data-label="${focused}"] button`)?.focus()
    }
    if (this.memo.changed('lit', String(inspected?.label))) {
      for (const row of byId('labels').querySelectorAll('tr[data-label]')) {
        row.classList.toggle('lit', Number(row.dataset.label) === inspected?.label)
      }
    }
  }

  renderInspector(explore) {
    const { inspected, main, second, plies } = explore
    if (!this.memo.changed('inspector', [inspected, main.likely, second?.likely, main.inspected_wrong.length, second?.inspected_wrong.length])) return
    const root = byId('inspector')
    if (!inspected) {
      root.replaceChildren(h('p', { class: 'muted' }, 'Point at a square or a label: the three most probable classes, and where along the game it is wrong.'))
      return
    }
    const part = seat => {
      if (!seat || seat.likely.length === 0) return null
      const rows = seat.likely.map(({ words, probability, percent, true_class }) => h('li', { class: true_class ? 'is-true' : null },
        h('span', { class: 'likely-words' }, true_class ? '= ' : '≠ ', words),
        probability === null ? null : h('meter', { min: '0', max: '1', value: String(probability), 'aria-label': `${words} ${percent}` }),
        h('span', { class: 'sure' }, percent)))
      const count = seat.inspected_wrong.length
      return h('div', { class: 'likely' }, h('p', { class: 'likely-name' }, seat.name), h('ul', {}, rows),
        h('p', { class: 'muted' }, count === 0 ? 'never wrong in this game' : `wrong at ${count} of ${plies + 1} steps`))
    }
    root.replaceChildren(...[h('p', {}, h('strong', {}, inspected.title), ` is ${inspected.truth}`), part(main), part(second)].filter(Boolean))
  }

  renderEntry(explore) {
    const { note, trouble, policies, policy } = explore
    const element = byId('note')
    say(element, note.text)
    element.classList.toggle('is-error', note.error)
    byId('text').setAttribute('aria-invalid', String(note.error))
    const legal = byId('legal')
    legal.hidden = !(trouble && trouble.legal_plies > 0)
    if (trouble) say(legal, `Load the legal part (${trouble.legal_plies} plies)`)
    if (this.memo.changed('policies', policies)) {
      fill(byId('policy'), [['', policies.map(([name, about]) => [name, name === 'uniform' ? 'uniform' : `${name}: ${about}`])]], policy)
    }
  }
}

/** A button that repeats while it is held, faster and faster. */
function holdable(button, work) {
  let timer = 0
  const stop = () => clearTimeout(timer)
  button.addEventListener('pointerdown', event => {
    if (event.button !== 0) return
    work()
    let wait = 140
    const again = () => {
      work()
      wait = Math.max(30, wait * 0.88)
      timer = setTimeout(again, wait)
    }
    timer = setTimeout(again, 380)
  })
  for (const event of ['pointerup', 'pointerleave', 'pointercancel', 'blur']) button.addEventListener(event, stop)
  // From the keyboard, and from assistive technology, clicks come without a pointer.
  button.addEventListener('click', event => event.detail === 0 && work())
}
