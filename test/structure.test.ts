/**
 * The import rule (ARCHITECTURE.md): imports run one way, and a library with a layer of its own is used only there. Cycles
 * between files are found by the linter.
 */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../', import.meta.url));

interface Import {
  /** Relative to src, or to the repository for what lies beside src, as is `to` unless it names a package. */
  readonly from: string;
  readonly to: string;
  readonly typeOnly: boolean;
}

/**
 * By layer, a folder or one within it that has a rule of its own: the folders or files whose values it may use; after a
 * semicolon, those of which it may use only types. Files at the root may always be used.
 */
const RULES = new Map(
  `system:
  search: system
  store: system
  agent: system; store
  agent/loop: agent agent/poll agent/pass agent/results agent/live agent/tasks agent/schedule agent/requests system; store
  agent/schedule: system
  agent/requests: agent system; agent/pass store
  agent/tasks: agent system; store
  agent/pass: agent agent/poll agent/results agent/live system; store
  agent/poll: agent agent/live system; store
  agent/live: agent system; store
  agent/results: agent agent/live/mirror system; store
  remote/http: system
  remote: remote/http remote/rest/releases.ts system; agent/ports
  remote/content: remote remote/http system; agent/ports
  remote/text: system; agent/ports
  remote/soap: remote remote/content remote/http system; agent/ports
  remote/rest: remote remote/content remote/http system; agent/ports
  remote/signin: remote remote/http remote/rest/releases.ts system; agent/ports
  direct: system; agent/ports
  config: system remote/rest/contract.ts remote/rest/releases.ts
  fleet: agent store system; config
  notify: agent/patterns.ts remote/http search store system; agent/ports config
  daemon: agent remote direct store config system fleet notify view http
  http: system
  view: view/content view/events view/http http store system
  view/content: view http search system; store
  view/events: view view/content store system
  view/http: view view/content view/events http search store system
  view/page: ; view/contract
  cli: agent remote direct store config system daemon fleet notify view search
  api: cli daemon agent notify store config system http
  simulator: system remote/soap/contract.ts remote/rest/contract.ts remote/rest/releases.ts
  simulator/demo: simulator cli daemon agent store system; remote/rest/releases.ts
  simulator/commands: simulator simulator/demo cli`
    .split('\n')
    .map((line) => line.trim().split(':') as [string, string])
    .map(([layer, named]) => [layer, named.split(';').map((names) => names.trim().split(' '))] as const),
);

/** The one way from the product to its simulator: these two commands are loaded when they are called. */
const CALLS_OF_SIMULATOR = [
  'cli/program.ts -> simulator/commands/sandbox.ts',
  'cli/program.ts -> simulator/commands/demo.ts',
];

/** Packages that one folder wraps, or two that serve requests. */
const WRAPPED: Readonly<Record<string, string | readonly string[]>> = {
  soap: 'remote/soap',
  'better-sqlite3': 'store',
  pg: 'fleet',
  pino: 'daemon',
  'sonic-boom': 'daemon',
  hono: ['http', 'view/http'],
  '@hono/node-server': 'http',
};

// `import ... from 'x'` and `export ... from 'x'` over any lines, `import 'x'`, `import('x')` in code and in types.
const FROM = /^(?:import|export)\s+(type\s)?[^;'"]*?\sfrom\s+['"]([^'"]+)['"]/gm;
const BARE = /^import\s+['"]([^'"]+)['"]/gm;
const NAMED = /^import\s+(?:type\s+)?\{([^}]*)\}\s+from\s+'(\.[^']*)'/gm;
const COMPUTED = /\b(?:Pick|Omit)<\s*(?:ReturnType<)?(?:typeof )?(\w+)/g;
const CALLED = /\bimport\(\s*['"]([^'"]+)['"]\s*\)/g;

function importsIn(from: string, text: string): Import[] {
  const place = path.posix.dirname(fileOf(from));
  const at = (specifier: string) => (specifier.startsWith('.') ? nameOf(path.posix.join(place, specifier)) : specifier);
  return [
    ...[...text.matchAll(FROM)].map(([, type, to = '']) => ({ from, to: at(to), typeOnly: type !== undefined })),
    ...[...text.matchAll(BARE), ...text.matchAll(CALLED)].map(([, to = '']) => ({ from, to: at(to), typeOnly: false })),
  ];
}

/** The name of a file of the repository, and back. */
const nameOf = (file: string) => file.replace(/^src\//, '');
const fileOf = (name: string) => (name.startsWith('simulator/') ? name : `src/${name}`);

const files = ['src', 'simulator'].flatMap((folder) =>
  fs
    .readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => nameOf(path.posix.join(folder, file.split(path.sep).join('/')))),
);
const texts = new Map(files.map((file) => [file, fs.readFileSync(path.join(ROOT, fileOf(file)), 'utf8')]));
const product = [...texts].filter(([file]) => !file.startsWith('simulator/'));
const imports = [...texts].flatMap(([file, text]) => importsIn(file, text));

const isOfProject = ({ to }: Import) => files.includes(to);
/** The layers that a file is in, the innermost first. */
const layersOf = (file: string) => {
  const within = [...RULES.keys()].filter((layer) => file.startsWith(`${layer}/`));
  return within.sort((a, b) => b.length - a.length);
};
const isOfFolder = (specifier: string) => /^\.\/[^/]*$/.test(specifier);
const isAtRoot = (file: string) => !file.includes('/');
/** `soap` for `soap` and `soap/lib`, `@scope/name` for one with a scope. */
const packageOf = (specifier: string) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
const lines = (found: readonly Import[]) =>
  found.map(({ from, to, typeOnly }) => `${from} -> ${to}${typeOnly ? ' (types)' : ''}`);

function isAllowed({ from, to, typeOnly }: Import): boolean {
  const [source = ''] = layersOf(from);
  const [target] = layersOf(to);
  if (isAtRoot(to) || target === source) return true;
  const [values = [], types = []] = RULES.get(source) ?? [];
  const named = typeOnly ? [...values, ...types] : values;
  // A file that may use a layer may use the layers within it, too.
  const within = layersOf(to).filter((layer) => !from.startsWith(`${layer}/`) || layer === target);
  return within.some((layer) => named.includes(layer)) || named.some((name) => name === to || isFolderOf(name, to));
}

/** `remote` holds layers and no files. */
const isFolderOf = (folder: string, file: string) => !RULES.has(folder) && file.startsWith(`${folder}/`);

it('the reading of imports finds files and imports, each of which exists', () => {
  expect(files.length).toBeGreaterThan(50);
  expect(imports.length).toBeGreaterThan(200);
  expect(lines(imports.filter((one) => /\.tsx?$/.test(one.to) && !isOfProject(one)))).toEqual([]);
});

describe('the import rule', () => {
  it('has a rule for every folder', () => {
    expect(files.filter((file) => !isAtRoot(file) && layersOf(file).length === 0)).toEqual([]);
  });

  it('is kept by every import', () => {
    const others = lines(imports.filter((one) => isOfProject(one) && !isAllowed(one)));
    expect(others).toEqual(CALLS_OF_SIMULATOR);
  });

  it('lets files at the root import files at the root only', () => {
    const wrong = imports.filter(({ from, to }) => isAtRoot(from) && (!isAtRoot(to) || !to.endsWith('.ts')));
    expect(lines(wrong)).toEqual([]);
  });

  it('keeps the wire of the service out of polls and live files', () => {
    const ofPolls = imports.filter(({ from }) => /^agent\/(?:live|poll)\//.test(from));
    expect(ofPolls.some(({ to }) => to === 'agent/ports/live-source.ts')).toBe(true);
    expect(lines(ofPolls.filter(({ to }) => to === 'agent/ports/server.ts'))).toEqual([]);
  });

  it('keeps a wrapped package in its folder', () => {
    const wrong = imports.filter(({ from, to }) => {
      const folders = to.endsWith('.ts') ? undefined : WRAPPED[packageOf(to)];
      return folders !== undefined && ![folders].flat().some((folder) => from.startsWith(`${folder}/`));
    });
    expect(lines(wrong)).toEqual([]);
    for (const name of Object.keys(WRAPPED)) {
      expect(imports.filter(({ to }) => packageOf(to) === name).length, `files that import ${name}`).toBeGreaterThan(0);
    }
  });

  it('uses every package that is installed with it, at run time', () => {
    const manifest = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    const used = new Set(imports.filter(({ typeOnly }) => !typeOnly).map(({ to }) => packageOf(to)));
    expect(Object.keys(manifest.dependencies).filter((name) => !used.has(name))).toEqual([]);
  });

  it('computes no type of another folder by Pick or Omit', () => {
    const computed = product.flatMap(([file, text]) => {
      const foreign = [...text.matchAll(NAMED)].flatMap(([, names = '', from = '']) =>
        isOfFolder(from) ? [] : names.split(',').map((name) => name.trim().split(/\s/).at(-1)),
      );
      const found = [...text.matchAll(COMPUTED)].map(([, name]) => name);
      return found.filter((name) => foreign.includes(name)).map((name) => `${file}: ${name}`);
    });
    expect(computed).toEqual([]);
  });

  it('names each type once in the product', () => {
    const declared = /^(?:export )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm;
    const named = product.flatMap(([file, text]) =>
      [...text.matchAll(declared)].map(([, name = '']) => ({ name, file })),
    );
    const twice = named.filter(({ name }, index) => named.findIndex((one) => one.name === name) !== index);
    expect(named.length).toBeGreaterThan(500);
    expect(twice).toEqual([]);
  });
});
