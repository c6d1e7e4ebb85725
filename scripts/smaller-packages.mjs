// Packages that load far more than the program uses of them: at each start and first call, and in the memory of a quiet
// agent. Their modules are the same, only fewer.
import { fileURLToPath } from 'node:url';

/** By the end of the path of a module: what stands in its place. */
const INSTEAD = {
  // The main file: without fetch, WebSocket, caches and mocks, which it makes ready beside the clients.
  'undici/index.js': `
    Object.assign(require('./lib/dispatcher/dispatcher').prototype, require('./lib/api'));
    exports.Agent = require('./lib/dispatcher/agent');
    exports.Pool = require('./lib/dispatcher/pool');
    exports.ProxyAgent = require('./lib/dispatcher/proxy-agent');
    exports.buildConnector = require('./lib/core/connect');
    exports.errors = require('./lib/core/errors');`,
  // By which a contract would be fetched, with axios; the one here is in the program.
  'soap/lib/http.js': 'exports.HttpClient = undefined;',
};

/** By the end of the path of a module: texts in it, which must be there, and what stands in their place. */
const CHANGED = {
  // Where it is built, without a search; its code is bundled.
  'better-sqlite3/lib/database.js': {
    "require('bindings')('better_sqlite3.node')": "require('better-sqlite3/build/Release/better_sqlite3.node')",
  },
  // For commands that are programs of their own; here, none is.
  'commander/lib/command.js': { "const childProcess = require('node:child_process');": '' },
  // Made at the first text beyond ASCII: both read the tables of ICU, the expression for a tenth of a start.
  'string-width/index.js': {
    'const segmenter = new Intl.Segmenter();':
      'let made; const segmenter = { segment: (text) => (made ??= new Intl.Segmenter()).segment(text) };',
    'const rgiEmojiRegex = /^\\p{RGI_Emoji}$/v;':
      'let emoji; const rgiEmojiRegex = { test: (text) => (emoji ??= new RegExp("^\\\\p{RGI_Emoji}$", "v")).test(text) };',
  },
};

/**
 * An `import` from Node.js reads all getters of a module, and loads what is behind them: `fs.promises`, `fetch`, WebCrypto.
 * Each of these lines begins a start.
 */
const BUILT_IN = /^import (?:(?:\* as )?([\w$]+)(?:, )?)?(?:\{(.*)\})? from "(node:[\w/]+)";$/gm;
const declarationOf = (_, whole, names, module) => {
  const built = `process.getBuiltinModule("${module}")`;
  const parts = names === undefined ? [] : [`{${names.replaceAll(' as ', ': ')}} = ${built}`];
  return `const ${[...(whole === undefined ? [] : [`${whole} = ${built}`]), ...parts].join(', ')};`;
};

/** The modules of ECMAScript, of which only what is used is bundled. */
const YAML = fileURLToPath(new URL('../node_modules/yaml/browser/dist/index.js', import.meta.url));

/** What would fetch a contract, and what is no client. */
const LEFT_OUT = /[/\\]node_modules[/\\](?:axios|undici[/\\]lib[/\\]mock)[/\\]/;

const BEYOND_ASCII = /[^ -~\t\n]/g;
const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
const nameOf = (id) => /[/\\]node_modules[/\\]([^/\\]+[/\\].*)$/.exec(id)?.[1].replaceAll('\\', '/');

/** A plugin of the bundler. */
export const smallerPackages = {
  name: 'smaller-packages',
  resolveId: (id) => (id === 'yaml' ? YAML : null),
  load: (id) => INSTEAD[nameOf(id)] ?? null,
  generateBundle(_, bundle) {
    const unwanted = Object.values(bundle).flatMap(({ moduleIds = [] }) => moduleIds.filter((id) => LEFT_OUT.test(id)));
    if (unwanted.length > 0) throw new Error(`the program is to be built without ${unwanted[0]}`);
    // One character beyond Latin-1 doubles the memory of a whole file, and the time to read it.
    for (const file of Object.values(bundle))
      if (file.type === 'chunk') file.code = file.code.replace(BEYOND_ASCII, escaped).replace(BUILT_IN, declarationOf);
  },
  transform(code, id) {
    const changes = Object.entries(CHANGED[nameOf(id)] ?? {});
    if (changes.length === 0) return null;
    const changed = changes.reduce((before, [text, instead]) => {
      if (!before.includes(text)) throw new Error(`${id}: it has no ${JSON.stringify(text)} any more`);
      return before.replace(text, () => instead);
    }, code);
    return { code: changed, map: null };
  },
};
