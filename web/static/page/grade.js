// The Grade page: a checkpoint, games, a run, and what came of it.
import { byId, h, Memo, say } from './dom.js'
import { save } from './session.js'

export class GradePage {
  constructor(session, shell) {
    this.session = session
    this.shell = shell
    this.memo = new Memo()
    this.root = byId('tab-grade')
    this.build()
  }

  tell(command) {
    this.session.do({ do: 'grade', ...command })
  }

  build() {
    this.subject = h('select', { id: 'grade-subject', on: { change: event => this.tell({ grade: 'subject', name: event.target.value || null }) } })
    this.drop = h('button', { type: 'button', class: 'drop', on: { click: () => byId('file').click() } },
      h('strong', {}, 'Drop a checkpoint here, or choose files'),
      h('span', { class: 'muted' }, 'a safetensors file, with its config.json if the config is not inside, or the .pt file of the reference; it never leaves this computer'))
    this.address = h('input', { type: 'url', id: 'address', placeholder: 'address on this site', autocomplete: 'off', spellcheck: 'false' })
    const address = h('form', { class: 'address', on: { submit: event => this.fetchFile(event) } },
      h('label', { for: 'address' }, 'or by address'), this.address, h('button', { type: 'submit', class: 'small' }, 'Open'))
    this.loading = h('div', { class: 'loading', hidden: true })
    this.check = h('div', { class: 'file-check' })
    this.fault = h('div', { class: 'trouble', role: 'alert', hidden: true })
    this.explore = h('button', { type: 'button', class: 'small', on: { click: () => this.tell({ grade: 'explore' }) } }, 'Look at it in Explore')
    this.sets = h('fieldset', { class: 'cards', id: 'sets', on: { change: event => this.tell({ grade: 'set', set: event.target.value }) } })
    this.seed = this.field('seed', 'Seed', 'seed', 'numeric')
    this.policy = h('select', { id: 'grade-policy', on: { change: event => this.tell({ grade: 'policy', policy: event.target.value }) } })
    this.policyRow = h('label', { class: 'field' }, h('span', {}, 'Policy'), this.policy)
    this.pgn = h('p', { class: 'muted' })
    this.pgnRow = h('div', { class: 'field' }, h('button', { type: 'button', on: { click: () => byId('file').click() } }, 'Choose a PGN'), this.pgn)
    this.sizes = h('fieldset', { class: 'cards small-cards', id: 'sizes', on: { change: event => this.tell({ grade: 'size', size: event.target.value }) } })
    this.custom = this.field('custom', 'Games', 'games', 'numeric')
    this.baselines = h('input', { type: 'checkbox', on: { change: event => this.tell({ grade: 'baselines', on: event.target.checked }) } })
    this.run = h('button', { type: 'button', class: 'primary', on: { click: () => this.tell({ grade: 'run' }) } }, 'Grade')
    this.blocked = h('p', { class: 'muted', id: 'blocked' })
    this.line = h('code', { class: 'command-line' })
    this.running = h('section', { class: 'running', 'aria-label': 'Progress', hidden: true })
    this.charts = h('div', { class: 'charts' })
    this.results = h('section', { class: 'results', 'aria-label': 'Results' })
    this.root.append(
      h('div', { class: 'grade-setup' },
        h('section', { class: 'card', 'aria-labelledby': 'step-1' }, h('h2', { id: 'step-1' }, 'Checkpoint'),
          h('label', { class: 'field' }, h('span', {}, 'Grade'), this.subject), this.drop, address, this.loading, this.fault, this.check, this.explore),
        h('section', { class: 'card', 'aria-labelledby': 'step-2' }, h('h2', { id: 'step-2' }, 'Games'), this.sets, this.seed.row, this.policyRow,
          this.pgnRow, this.sizes, this.custom.row, h('label', { class: 'field check-field' }, this.baselines, h('span', {}, 'grade the baselines too')),
          h('div', { class: 'row run-row' }, this.run, this.blocked),
          h('p', { class: 'muted' }, 'The same on the command line: ', this.line))),
      this.running, this.results)
  }

  field(name, label, key, mode) {
    const input = h('input', { inputmode: mode, autocomplete: 'off', size: '10', on: { input: event => this.tell({ grade: name, [key]: event.target.value }) } })
    return { input, row: h('label', { class: 'field' }, h('span', {}, label), input) }
  }

  async fetchFile(event) {
    event.preventDefault()
    const address = this.address.value.trim()
    if (!address) return
    try {
      const url = new URL(address, location.href)
      const answer = await fetch(url)
      if (!answer.ok) throw new Error(`the server answers ${answer.status}`)
      const blob = await answer.blob()
      await this.shell.files([new File([blob], url.pathname.split('/').pop() || 'file')])
    } catch (error) {
      this.shell.toast({ level: 'error', text: `${address} could not be opened: ${error.message}`, hint: 'this page fetches from its own site alone: download the file and drop it' })
    }
  }

  render(view) {
    const { grade } = view
    if (!grade) return
    this.renderSubject(view, grade)
    this.renderGames(grade)
    this.renderRun(grade)
    if (view.result) this.renderResult(view.result)
  }

  renderSubject(view, grade) {
    const networks = view.models.filter(model => !model.baseline)
    if (this.memo.changed('subjects', [networks, grade.subject, grade.model])) {
      const names = networks.map(model => h('option', { value: model.name }, `${model.name} (${model.about})`))
      if (grade.subject && !networks.some(model => model.name === grade.subject)) names.push(h('option', { value: grade.subject }, `${grade.subject} (your file)`))
      this.subject.replaceChildren(...names, h('option', { value: '' }, 'the baselines alone'))
      this.subject.value = grade.model ? grade.subject ?? '' : ''
    }
    this.loading.hidden = !grade.opening
    if (grade.opening && this.memo.changed('opening', grade.opening)) {
      const { done, total, phase } = grade.opening
      const bar = h('progress', { max: '1', 'aria-label': 'loading the checkpoint' })
      if (total) bar.value = done / total
      this.loading.replaceChildren(bar, h('span', {}, phase.replaceAll('_', ' ')))
    }
    if (this.memo.changed('check', [grade.check, grade.model])) {
      this.check.hidden = grade.check.length === 0 || !grade.model
      this.check.replaceChildren(h('table', { class: 'facts' }, h('caption', {}, 'What the file is'), h('tbody', {}, grade.check.map(row =>
        h('tr', { class: row.warning ? 'is-warning' : null }, h('th', { scope: 'row' }, row.name), h('td', {}, row.value))))))
      this.explore.hidden = this.check.hidden
    }
    this.fault.hidden = !grade.fault
    if (grade.fault && this.memo.changed('fault', [grade.fault, grade.crashed])) {
      const restart = grade.crashed ? h('button', { type: 'button', on: { click: () => this.session.do({ do: 'restart', lane: 'grade' }) } }, 'Restart engine') : null
      const details = `${grade.fault.code}: ${grade.fault.message}\n${grade.fault.hint}`
      this.fault.replaceChildren(h('p', {}, h('strong', {}, grade.fault.message)), h('p', {}, grade.fault.hint), h('p', { class: 'muted' }, grade.fault.code), restart ?? '',
        h('button', { type: 'button', class: 'small', on: { click: () => navigator.clipboard?.writeText(details).catch(() => {}) } }, 'Copy details'))
    }
  }

  choices(fieldset, legend, name, entries, chosen) {
    if (this.memo.changed(name, entries)) {
      fieldset.replaceChildren(h('legend', {}, legend), ...entries.map(({ id, title, about }) => h('label', { class: 'choice' },
        h('input', { type: 'radio', name, value: id }), h('span', {}, h('strong', {}, title), h('span', { class: 'muted' }, about)))))
      this.memo.forget(`${name}-chosen`)
    }
    fieldset.hidden = entries.length === 0
    if (this.memo.changed(`${name}-chosen`, chosen)) {
      const input = fieldset.querySelector(`input[value="${chosen}"]`)
      if (input) input.checked = true
    }
  }

  renderGames(grade) {
    this.choices(this.sets, 'Which games', 'grade-set', grade.sets, grade.set)
    this.choices(this.sizes, 'How many', 'grade-size', grade.sizes, grade.size)
    this.seed.row.hidden = !['random', 'stratum'].includes(grade.set)
    this.policyRow.hidden = grade.set !== 'stratum'
    this.pgnRow.hidden = grade.set !== 'pgn'
    this.custom.row.hidden = grade.size !== 'custom' || grade.sizes.length === 0
    for (const [field, value] of [[this.seed, grade.seed], [this.custom, grade.custom]]) {
      if (field.input.value !== value && document.activeElement !== field.input) field.input.value = value
    }
    if (this.memo.changed('policies', grade.policies)) {
      this.policy.replaceChildren(...grade.policies.map(({ id, about }) => h('option', { value: id }, `${id}: ${about}`)))
    }
    if (this.policy.value !== grade.policy) this.policy.value = grade.policy
    say(this.pgn, grade.pgn ?? 'none yet')
    this.baselines.checked = grade.baselines || !grade.model
    this.baselines.disabled = !grade.model
  }

  renderRun(grade) {
    const { run, blocked } = grade
    this.run.disabled = Boolean(run || blocked)
    say(this.blocked, run ? '' : blocked ?? '')
    say(this.line, grade.command_line ?? '\u2013')
    for (const input of this.root.querySelectorAll('.grade-setup input, .grade-setup select, .grade-setup .drop')) {
      input.disabled = Boolean(run) || (input === this.baselines && !grade.model)
    }
    this.running.hidden = !run
    if (!run) {
      this.progress = null
      return
    }
    if (!this.progress) {
      this.progress = {
        what: h('h2', {}), bar: h('progress', { max: '1', 'aria-label': 'evaluation' }), text: h('p', { class: 'numbers' }),
        rows: h('tbody', {}),
        cancel: h('button', { type: 'button', on: { click: () => this.tell({ grade: 'cancel' }) } }, 'Cancel and keep what is graded'),
      }
      const { what, bar, text, rows, cancel } = this.progress
      this.running.replaceChildren(what, bar, text, h('table', { class: 'facts' }, h('caption', { class: 'hidden' }, 'Graded so far'), rows), cancel,
        h('p', { class: 'muted' }, 'It goes on while this tab is hidden.'))
      this.running.scrollIntoView({ block: 'nearest' })
    }
    const { what, bar, text, rows, cancel } = this.progress
    say(what, run.what)
    if (run.fraction === null) bar.removeAttribute('value')
    else bar.value = run.fraction
    bar.setAttribute('aria-valuetext', run.text)
    say(text, run.text)
    cancel.disabled = run.cancelling
    if (this.memo.changed('run-rows', run.rows)) {
      rows.replaceChildren(...run.rows.map(row => h('tr', {}, h('th', { scope: 'row' }, row.name), h('td', {}, `${row.exact} exact`), h('td', { class: 'muted' }, row.count))))
    }
  }

  renderResult(result) {
    const parts = [h('div', { class: 'row' }, h('h2', {}, result.complete ? 'Results' : 'Partial results'), h('div', { class: 'copies', role: 'group', 'aria-label': 'Export' },
      ...[['json', 'Report (JSON)'], ['csv', 'Prefix bins (CSV)'], ['tsv', 'Summary (TSV)']].map(([what, text]) =>
        h('button', { type: 'button', class: 'small', on: { click: () => this.tell({ grade: 'export', what }) } }, text))))]
    parts.push(...result.tables.map(table => headline(table)))
    parts.push(h('label', { class: 'field check-field' }, h('input', {
      type: 'checkbox', checked: result.all_paper_rows, on: { change: event => this.tell({ grade: 'paper_rows', all: event.target.checked }) },
    }), h('span', {}, 'show every row of the paper')))
    if (result.skipped.length > 0) {
      parts.push(h('p', {}, 'Left out: ', result.skipped.map(([reason, games]) => `${games} ${reason}`).join(', ')))
    }
    parts.push(this.charts)
    if (result.worst.length > 0) {
      parts.push(h('h3', {}, 'Worst games'), ...worstByTracker(result.worst, at => this.tell({ grade: 'look', worst: at })))
    }
    if (result.timings.length > 0) {
      parts.push(h('details', {}, h('summary', {}, 'Where the time went'), h('ul', {}, result.timings.map(text => h('li', {}, text)))))
    }
    this.results.replaceChildren(...parts)
  }

  /** Adds a chart to the results; the first one takes the place of an earlier run's. */
  addChart({ first, chart }) {
    if (first) this.charts.replaceChildren()
    this.charts.append(this.chart(chart))
  }

  chart(chart) {
    const parsed = new DOMParser().parseFromString(chart.svg, 'image/svg+xml').documentElement
    const svg = document.importNode(parsed, true)
    svg.classList.add('chart')
    // Its numbers stand on shades of orange, which need the white behind them.
    if (chart.name.includes('-error-map-')) svg.classList.add('on-white')
    const [width, height] = [Number(svg.getAttribute('width')), Number(svg.getAttribute('height'))]
    svg.setAttribute('viewBox', `0 0 ${width} ${height}`)
    svg.removeAttribute('width')
    svg.removeAttribute('height')
    const exact = h('p', { class: 'exact-value muted', 'aria-live': 'off' }, 'point at a mark for its exact value')
    // Where lines meet, marks lie on each other: all of them are told.
    svg.addEventListener('pointermove', event => {
      const marks = document.elementsFromPoint(event.clientX, event.clientY).filter(element => element.matches('[data-value]') && svg.contains(element))
      if (marks.length > 0) say(exact, marks.map(mark => mark.dataset.value).join('; '))
    })
    const png = () => saveAsPng(chart, width, height).catch(error => this.shell.toast({ level: 'error', text: `no PNG: ${error.message}`, hint: 'save the SVG instead' }))
    return h('figure', { class: 'chart-box' }, h('figcaption', {}, h('strong', {}, chart.title), h('span', { class: 'muted' }, chart.about)), h('div', { class: 'chart-scroll' }, svg), exact,
      h('div', { class: 'row' }, h('details', {}, h('summary', {}, 'Table'), h('div', { class: 'scroll' }, table(chart))),
        h('div', { class: 'copies' }, h('button', { type: 'button', class: 'small', 'aria-label': `${chart.title}: save as SVG`, on: { click: () => this.tell({ grade: 'export', what: { svg: chart.name } }) } }, 'SVG'),
          h('button', { type: 'button', class: 'small', 'aria-label': `${chart.title}: save as PNG`, on: { click: png } }, 'PNG'))))
  }
}

function headline(table) {
  const metric = ({ value, interval, count }, unit) => h('td', {}, h('span', { class: 'value' }, value, value === '-' ? '' : unit),
    interval ? h('span', { class: 'interval' }, `[${interval}]`) : null, count ? h('span', { class: 'count' }, count) : null)
  const row = entry => h('tr', { class: `row-${entry.kind}` }, h('th', { scope: 'row' }, entry.kind === 'paper' ? h('span', { class: 'tag' }, 'paper') : null, entry.name),
    metric(entry.exact, ' %'), metric(entry.games, ' %'), metric(entry.labelwise, ' %'), metric(entry.loss, ''))
  const heads = ['Tracker', 'Exact states', 'Exact games', 'Labels right', 'Loss, nats a label']
  return h('div', {}, h('h3', {}, table.dataset, ' ', h('span', { class: 'muted' }, table.size), table.preview ? h('span', { class: 'tag tag-preview' }, 'preview, not comparable') : null),
    h('div', { class: 'scroll' }, h('table', { class: 'headline' }, h('caption', { class: 'hidden' }, `Scores on ${table.dataset}`),
      h('thead', {}, h('tr', {}, heads.map(head => h('th', { scope: 'col' }, head)))), h('tbody', {}, table.rows.map(row)))),
    h('ul', { class: 'notes' }, table.notes.map(note => h('li', {}, note))))
}

/** A list a tracker, the first one open; a click looks at the game where it goes wrong. */
function worstByTracker(worst, look) {
  const trackers = [...new Set(worst.map(game => game.tracker))]
  return trackers.map((tracker, first) => h('details', { class: 'worst', open: first === 0 }, h('summary', {}, tracker),
    h('ul', { class: 'list' }, worst.map((game, at) => game.tracker === tracker && h('li', {},
      h('button', { type: 'button', on: { click: () => look(at) } }, h('span', {}, game.title), h('span', { class: 'muted' }, game.about)))))))
}

function table(chart) {
  return h('table', { class: 'facts' }, h('caption', { class: 'hidden' }, chart.title), h('thead', {}, h('tr', {}, chart.header.map(cell => h('th', { scope: 'col' }, cell)))),
    h('tbody', {}, chart.rows.map(([first, ...cells]) => h('tr', {}, h('th', { scope: 'row' }, first), cells.map(cell => h('td', {}, cell))))))
}

/** Draws a chart on a canvas, twice as large, and saves it. */
async function saveAsPng(chart, width, height) {
  const url = URL.createObjectURL(new Blob([chart.svg], { type: 'image/svg+xml' }))
  try {
    const image = new Image()
    image.src = url
    await image.decode()
    const canvas = h('canvas', { width: String(width * 2), height: String(height * 2) })
    canvas.getContext('2d').drawImage(image, 0, 0, width * 2, height * 2)
    const blob = await new Promise(done => canvas.toBlob(done, 'image/png'))
    if (!blob) throw new Error('the browser drew nothing')
    save(`${chart.name}.png`, blob)
  } finally {
    URL.revokeObjectURL(url)
  }
}
