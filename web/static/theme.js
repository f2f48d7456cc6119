// Before anything is painted: the theme that was chosen here last.
try {
  document.documentElement.dataset.theme = localStorage.getItem('cwm-theme') ?? 'auto'
} catch {
  // Storage may be forbidden; the system's theme is as good.
}
