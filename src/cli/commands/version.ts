/** `agent version`: versions of the program and its environment. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { asJobtailError } from '../../errors.ts';
import { jsonReport } from '../../json-report.ts';
import { printable } from '../../printable.ts';
import { sqliteVersion } from '../../store/sql.ts';
import { versionOfProgram } from '../../system/package-file.ts';

const require = createRequire(import.meta.url);

export function version({ json }: { readonly json?: boolean }): void {
  const report = versionReport();
  if (json === true) process.stdout.write(jsonReport(report));
  else process.stdout.write(textOf(report));
}

export function versionReport() {
  const sqlite = installed('better-sqlite3', () => void sqliteVersion());
  return {
    program: { name: 'jobtail', version: versionOfProgram(), file: fs.realpathSync(process.argv[1] ?? '') },
    node: { version: process.versions.node, file: process.execPath },
    platform: { system: process.platform, architecture: process.arch, glibc: glibcVersion() },
    sqlite: sqlite.error === null ? sqliteVersion() : null,
    modules: {
      'better-sqlite3': sqlite,
      // Optional: without them there are no notifications of systemd, and no fleet.
      'unix-dgram': installed('unix-dgram', () => void require('unix-dgram')),
      pg: installed('pg'),
    },
  };
}

function textOf({ program, node, platform, sqlite, modules }: ReturnType<typeof versionReport>): string {
  const glibc = platform.glibc === null ? '' : `, glibc ${platform.glibc}`;
  const lines = [
    `${program.name} ${program.version}`,
    `Node.js ${node.version} (${platform.system}-${platform.architecture}${glibc})`,
    `SQLite ${sqlite ?? 'not available'}`,
    ...Object.entries(modules).map(([name, { version: found, error }]) =>
      printable(`${name} ${found ?? 'not installed'}${error === null ? '' : ` (cannot be loaded: ${error})`}`),
    ),
  ];
  return `${lines.join('\n')}\n`;
}

function installed(name: string, load?: () => void) {
  const found = packageVersion(name);
  let error: string | null = null;
  try {
    if (found !== null) load?.();
  } catch (thrown) {
    error = asJobtailError(thrown).message.split('\n')[0] ?? '';
  }
  return { version: found, isNative: load !== undefined, error };
}

/** Read from the file: the exports of a package need not include its package.json. */
function packageVersion(name: string): string | null {
  for (const directory of require.resolve.paths(name) ?? []) {
    const file = path.join(directory, name, 'package.json');
    if (fs.existsSync(file)) return (JSON.parse(fs.readFileSync(file, 'utf8')) as { version: string }).version;
  }
  return null;
}

function glibcVersion(): string | null {
  if (process.platform !== 'linux' || process.report === undefined) return null;
  // Otherwise the report resolves the names of all connections.
  Object.assign(process.report, { excludeNetwork: true });
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime ?? null;
}
