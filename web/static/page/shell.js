// What surrounds the pages: tabs, theme, badge, dialogs, messages, keys, files that are dropped.
import { pieceOf } from './board.js'
import { byId, h, Memo, say } from './dom.js'

const THEMES = [
  ['auto', '◐', 'Theme: as the system'],
  ['light', '☀', 'Theme: light'],
  ['dark', '☾', 'Theme: dark'],
]
/** Texts longer than this go to the worker as files. */
const TEXT_BYTES_MAX = 1 << 20

export class Shell {
  constructor(session, keys) {
    this.session = session
    this.memo = new Memo()
    this.keys = new Set(keys)
    this.tab = 'explore'
    this.listen()
    this.theme(document.documentElement.dataset.theme ?? 'auto')
  }

  listen() {
    const { session } = this
    for (const button of document.querySelectorAll('[data-tab]')) {
      button.addEventListener('click', () => session.do({ do: 'tab', tab: button.dataset.tab }))
    }
    byId('help').addEventListener('click', () => session.do({ do: 'dialog', dialog: 'help' }))
    byId('theme').addEventListener('click', () => {
      const at = THEMES.findIndex(([name]) => name === this.chosen)
      this.theme(THEMES[(at + 1) % THEMES.length][0])
    })
    byId('badge').addEventListener('click', () => {
      byId('badge-why').hidden = !byId('badge-why').hidden
    })
    byId('badge').addEventListener('blur', () => (byId('badge-why').hidden = true))
    addEventListener('popstate', () => session.do({ do: 'hash', hash: location.hash }))
    addEventListener('keydown', event => this.key(event))
    addEventListener('beforeunload', event => {
      if (this.busy) event.preventDefault()
    })
    const dialog = byId('dialog')
    dialog.addEventListener('cancel', event => {
      event.preventDefault()
      this.closeDialog()
    })
    dialog.addEventListener('click', event => {
      if (event.target === dialog) this.closeDialog()
    })
    byId('file').addEventListener('change', event => {
      this.files([...event.target.files])
      event.target.value = ''
    })
    this.listenToDrops()
  }

  theme(name) {
    const [chosen, sign, label] = THEMES.find(([known]) => known === name) ?? THEMES[0]
    this.chosen = chosen
    document.documentElement.dataset.theme = chosen
    say(byId('theme'), sign)
    byId('theme').setAttribute('aria-label', label)
    try {
      localStorage.setItem('cwm-theme', chosen)
    } catch {
      // Storage may be forbidden: the choice lasts as long as the page.
    }
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.defaultPrevented) return
    if (event.target.closest?.('input, textarea, select, [contenteditable]')) return
    if (!this.keys.has(event.key)) return
    const dialogOpen = byId('dialog').open
    // Buttons keep their own keys; a dialog keeps all but the help's.
    if (dialogOpen && event.key !== '?') return
    if (this.tab !== 'explore' && event.key !== '?') return
    event.preventDefault()
    this.session.do({ do: 'key', key: event.key })
  }

  closeDialog() {
    this.session.do(this.dialog === 'promotion' ? { do: 'promote', piece: null } : { do: 'dialog', dialog: null })
  }

  listenToDrops() {
    const hint = byId('drop-hint')
    let depth = 0
    const holdsFiles = event => [...(event.dataTransfer?.types ?? [])].includes('Files')
    addEventListener('dragenter', event => {
      if (!holdsFiles(event)) return
      depth += 1
      hint.hidden = false
    })
    addEventListener('dragleave', event => {
      if (!holdsFiles(event)) return
      depth -= 1
      if (depth <= 0) hint.hidden = true
    })
    addEventListener('dragover', event => holdsFiles(event) && event.preventDefault())
    addEventListener('drop', event => {
      if (!holdsFiles(event)) return
      event.preventDefault()
      depth = 0
      hint.hidden = true
      this.files([...event.dataTransfer.files])
    })
  }

  /** Tells the session about files; it decides what they are. */
  async files(files) {
    if (files.length === 0) return
    const look = async file => {
      const head = [...new Uint8Array(await file.slice(0, 16).arrayBuffer())]
      const short = file.size <= TEXT_BYTES_MAX && !/\.(safetensors|pt|pth|bin)$/i.test(file.name)
      return { key: this.session.keep(file), name: file.name, bytes: file.size, head, text: short ? await file.text() : null }
    }
    try {
      this.session.do({ do: 'files', files: await Promise.all(files.map(look)) })
    } catch (error) {
      this.toast({ level: 'error', text: `a file could not be read: ${error.message}`, hint: 'folders are opened by their files' })
    }
  }

  render(view) {
    this.busy = view.busy
    if (this.memo.changed('tab', view.tab)) {
      const moved = this.tab !== view.tab
      this.tab = view.tab
      for (const button of document.querySelectorAll('[data-tab]')) {
        if (button.dataset.tab === view.tab) button.setAttribute('aria-current', 'page')
        else button.removeAttribute('aria-current')
      }
      for (const name of ['explore', 'grade', 'about']) byId(`tab-${name}`).hidden = name !== view.tab
      if (moved) scrollTo(0, 0)
    }
    const { text, why, gpu } = view.badge
    say(byId('badge'), text)
    byId('badge').classList.toggle('gpu', gpu)
    say(byId('badge-why'), why || (gpu ? 'networks run on the GPU' : 'networks run on one thread of the CPU'))
    this.renderDialog(view)
  }

  renderDialog(view) {
    const dialog = byId('dialog')
    const content = [view.dialog, view.help, view.games, view.gallery, view.explore?.promotion]
    if (!this.memo.changed('dialog', content)) return
    const opened = this.dialog !== view.dialog
    this.dialog = view.dialog
    if (!view.dialog) {
      if (dialog.open) dialog.close()
      return
    }
    const scrolled = dialog.querySelector('.dialog-body')?.scrollTop ?? 0
    dialog.className = `dialog-${view.dialog}`
    dialog.replaceChildren(...this.dialogParts(view))
    if (!dialog.open) dialog.showModal()
    if (opened) dialog.querySelector('[autofocus]')?.focus()
    else dialog.querySelector('.dialog-body')?.scrollTo(0, scrolled)
  }

  dialogParts(view) {
    switch (view.dialog) {
      case 'help':
        return this.dialogFrame('Keys', h('table', { class: 'keys' }, h('tbody', {}, view.help.map(row => h('tr', {},
          h('th', { scope: 'row' }, row.keys.split(' ').map(key => h('kbd', {}, key))), h('td', {}, row.about))))),
        h('p', { class: 'muted' }, 'On the board: Tab to it, arrows to a square, Enter for the piece and again for its target. No key works in inputs or with Ctrl, Alt or Meta.'))
      case 'promotion':
        return this.promotion(view.explore.promotion)
      case 'games':
        return this.dialogFrame(`${view.games.length} games`, h('ul', { class: 'list' }, view.games.map((game, at) => h('li', {},
          h('button', { type: 'button', class: game.damaged ? 'damaged' : null, on: { click: () => this.session.do({ do: 'pick', game: at }) } },
            h('span', {}, `${at + 1}. ${game.title}`), h('span', { class: 'muted' }, game.about))))))
      case 'gallery':
        return this.dialogFrame('Gallery', view.gallery.map(section => h('section', {},
          h('h3', {}, section.title), h('p', { class: 'muted' }, section.about),
          h('ul', { class: 'list' }, section.items.map(item => h('li', {},
            h('button', { type: 'button', on: { click: () => this.session.do({ do: 'gallery', item: item.item }) } },
              h('span', {}, item.title), h('span', { class: 'muted' }, item.about))))))))
      default:
        return []
    }
  }

  dialogFrame(title, ...body) {
    const close = h('button', { type: 'button', class: 'icon', 'aria-label': 'Close', autofocus: true, on: { click: () => this.closeDialog() } }, '×')
    return [h('div', { class: 'row dialog-head' }, h('h2', { id: 'dialog-title' }, title), close), h('div', { class: 'dialog-body' }, ...body.flat())]
  }

  promotion([color, from, to]) {
    const pieces = [['q', 'queen'], ['r', 'rook'], ['b', 'bishop'], ['n', 'knight']]
    const button = ([letter, name], at) => h('button', {
      type: 'button', class: 'promote', autofocus: at === 0, 'aria-label': name,
      on: { click: () => this.session.do({ do: 'promote', piece: letter }) },
    }, h('span', { class: 'cg-wrap', 'aria-hidden': 'true' }, pieceOf(color === 'white' ? letter.toUpperCase() : letter)), name)
    const arrows = event => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
      if (!step) return
      const buttons = [...event.currentTarget.querySelectorAll('button')]
      buttons[(buttons.indexOf(document.activeElement) + step + 4) % 4]?.focus()
    }
    return [h('h2', { id: 'dialog-title' }, `${from}${to}: the pawn becomes a`), h('div', { class: 'promotions', on: { keydown: arrows } }, pieces.map(button)),
      h('button', { type: 'button', on: { click: () => this.closeDialog() } }, 'Cancel')]
  }

  /** Shows a message for a while; errors stay until they are closed. */
  toast({ level, text, hint, action }) {
    const same = [...byId('toasts').children].find(toast => toast.dataset.text === text)
    same?.remove()
    const close = () => toast.remove()
    const copy = () => navigator.clipboard?.writeText(hint ? `${text}\n${hint}` : text).catch(() => {})
    const toast = h('div', { class: `toast ${level}`, role: level === 'error' ? 'alert' : null, data: { text } },
      h('div', {}, h('p', {}, text), hint ? h('p', { class: 'muted' }, hint) : null),
      action ? h('button', { type: 'button', class: 'small', on: { click: action.work } }, action.text) : null,
      level === 'error' ? h('button', { type: 'button', class: 'small', on: { click: copy } }, 'Copy details') : null,
      h('button', { type: 'button', class: 'icon', 'aria-label': 'Close message', on: { click: close } }, '×'))
    byId('toasts').append(toast)
    while (byId('toasts').children.length > 4) byId('toasts').firstChild.remove()
    if (level !== 'error' && !action) setTimeout(close, 4000)
  }

  /** The session is gone; what is on screen is in the URL. */
  broken(error) {
    const banner = byId('banner')
    banner.replaceChildren(
      h('p', {}, h('strong', {}, 'Something went wrong inside the page. '), 'The game on screen is kept in the address. ', h('span', { class: 'muted' }, String(error?.message ?? error))),
      h('button', { type: 'button', class: 'primary', on: { click: () => location.reload() } }, 'Restart engine'))
    banner.hidden = false
  }
}
