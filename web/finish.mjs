// The last step of a build, run by trunk in its staging folder's name: npm's parts, the shipped checkpoints, smaller
// wasm, the list of files that works offline, compressed twins, and a table of sizes.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'

const web = dirname(fileURLToPath(import.meta.url))
const staging = process.env.TRUNK_STAGING_DIR
const inStaging = (...parts) => join(staging, ...parts)

/** Paths of all files below a folder, relative to it. */
function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(folder, join(entry.parentPath ?? entry.path, entry.name)))
    .sort()
}

// Trunk names the app after its package; the page calls it `app`.
const appScript = readFileSync(inStaging('cwm-app.js'), 'utf8').replaceAll('cwm-app_bg.wasm', 'app_bg.wasm')
writeFileSync(inStaging('app.js'), appScript)
renameSync(inStaging('cwm-app_bg.wasm'), inStaging('app_bg.wasm'))
rmSync(inStaging('cwm-app.js'))

// npm's parts.
const chessground = join(web, 'node_modules', 'chessground')
mkdirSync(inStaging('vendor'), { recursive: true })
cpSync(join(chessground, 'dist', 'chessground.min.js'), inStaging('vendor', 'chessground.js'))
for (const name of ['chessground.base.css', 'chessground.cburnett.css']) {
  cpSync(join(chessground, 'assets', name), inStaging('vendor', name))
}

// The shipped checkpoints. The default one comes first: the transition machine as soon as there is one.
const checkpoints = join(web, '..', 'models', 'checkpoints')
const parts = ['model.safetensors', 'config.json']
const shipped = readdirSync(checkpoints)
  .filter(name => parts.every(part => existsSync(join(checkpoints, name, part))))
  .map(name => {
    const config = JSON.parse(readFileSync(join(checkpoints, name, 'config.json'), 'utf8'))
    return { name, bytes: statSync(join(checkpoints, name, parts[0])).size, family: config.model_type ?? config.family ?? '' }
  })
  .sort((a, b) => (b.name.startsWith('transition') - a.name.startsWith('transition')) || a.bytes - b.bytes)
for (const { name } of shipped) {
  mkdirSync(inStaging('models', name), { recursive: true })
  for (const part of parts) cpSync(join(checkpoints, name, part), inStaging('models', name, part))
}
writeFileSync(inStaging('models', 'index.json'), JSON.stringify(shipped, null, 1) + '\n')

// Smaller wasm. Features are named one by one: all of them together make a file that browsers refuse.
const raw = {}
const wasmOpt = join(web, 'node_modules', 'binaryen', 'bin', 'wasm-opt')
const features = ['simd', 'bulk-memory', 'nontrapping-float-to-int', 'sign-ext', 'mutable-globals', 'reference-types', 'multivalue']
for (const path of filesBelow(staging).filter(path => path.endsWith('.wasm'))) {
  raw[path] = statSync(inStaging(path)).size
  // The GPU's engine is large, and spends its time on the GPU: only names are taken out of it.
  const level = path.startsWith('gpu') ? '-O0' : path.startsWith('app') ? '-Oz' : '-O3'
  const smaller = inStaging(`${path}.opt`)
  execFileSync(process.execPath, [wasmOpt, inStaging(path), '-o', smaller, level, '--strip-debug', '--strip-producers',
    ...features.map(feature => `--enable-${feature}`)], { stdio: 'inherit' })
  renameSync(smaller, inStaging(path))
}

// What works offline: everything but checkpoints that are not the default, and what only a GPU needs.
const paths = filesBelow(staging)
const optional = path => path.startsWith('gpu') || path === 'sw.js'
  || (path.startsWith('models/') && path !== 'models/index.json' && !path.startsWith(`models/${shipped[0]?.name}/`))
const hash = createHash('sha256')
for (const path of paths) hash.update(path).update('\0').update(readFileSync(inStaging(path)))
const version = hash.digest('hex').slice(0, 16)
const kept = ['./', ...paths.filter(path => !optional(path) && path !== 'index.html')]
const worker = readFileSync(inStaging('sw.js'), 'utf8')
  .replace("'VERSION'", JSON.stringify(version)).replace("['FILES']", JSON.stringify(kept))
writeFileSync(inStaging('sw.js'), worker)

// Compressed twins, for servers that know them, and the table.
const compress = promisify(brotliCompress)
const sizes = await Promise.all(filesBelow(staging).filter(path => /\.(wasm|js|css|html|json|svg)$/.test(path)).map(async path => {
  const bytes = readFileSync(inStaging(path))
  const small = await compress(bytes, { params: {
    [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length, [constants.BROTLI_PARAM_LGWIN]: 24,
  } })
  if (small.length < 0.9 * bytes.length) writeFileSync(inStaging(`${path}.br`), small)
  return { path, raw: raw[path] ?? bytes.length, served: bytes.length, brotli: small.length }
}))
writeFileSync(inStaging('sizes.json'), JSON.stringify(sizes, null, 1) + '\n')
const row = cells => cells.map((cell, i) => i ? String(cell).padStart(11) : String(cell).padEnd(24)).join(' ')
console.log(row(['wasm, in bytes', 'compiled', 'wasm-opt', 'brotli']))
for (const { path, raw, served, brotli } of sizes.filter(({ path }) => path.endsWith('.wasm'))) console.log(row([path, raw, served, brotli]))
const all = sizes.reduce((sum, { brotli }) => sum + brotli, 0)
console.log(`page ${version}: ${paths.length} files; scripts, styles and wasm together ${all} bytes of brotli`)
