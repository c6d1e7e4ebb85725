/** Finds, reads and validates the configuration file and its TLS files, and reports errors. */
import { isUtf8 } from 'node:buffer';
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { distance } from 'fastest-levenshtein';
import * as v from 'valibot';
import { JobtailError } from '../errors.ts';
import { printable } from '../printable.ts';
import { jobAbove } from '../safe-names.ts';
import { keptFile } from '../system/kept-files.ts';
import { isOfRoot } from '../system/owners.ts';
import type { Config } from './config.ts';
import { configSchema } from './schema.ts';
import type { Environment } from './secrets.ts';
import { type PlacedProblem, readYaml, type YamlText } from './yaml.ts';

/** Rejects with one `config` error: a line `file:line:column: key: expected ..., found ...` for each problem. */
export async function loadConfig(path: string): Promise<Config> {
  const file = resolve(path);
  const text = await readText(file);
  const yaml = readYaml(text);
  if (yaml.problems.length > 0)
    throw configError(linesOf(file, yaml.problems), 'correct this line; agent check tests the file');
  if (yaml.value === null || yaml.value === undefined) {
    throw configError([`${file}: the file contains no configuration (it is empty, or all of it is comments)`]);
  }
  const result = v.safeParse(configSchema(dirname(file)), yaml.value);
  if (result.success) return { file, ...result.output };
  const problems = result.issues.flatMap((issue) => problemsOf(issue, yaml));
  throw configError(linesOf(file, problems));
}

function linesOf(file: string, problems: readonly PlacedProblem[]): string[] {
  const lines = problems
    .toSorted((a, b) => a.position.line - b.position.line || a.position.column - b.position.column)
    .map(({ position, text }) => `${file}:${position.line}:${position.column}: ${text}`);
  // One mistake in YAML may be reported twice.
  return [...new Set(lines)];
}

function configError(lines: readonly string[], hint = 'config.example.yaml explains every key'): JobtailError {
  return new JobtailError('config', lines.join('\n'), { hint });
}

async function readText(file: string): Promise<string> {
  // It names programs, and this process runs them.
  const jobId = jobAbove(file) ?? jobAbove(realOf(file));
  if (jobId !== undefined) {
    const reason = `it is in a directory of job ${jobId}, whose files the job and the service name and write`;
    throw configError([`${file}: this file is no configuration: ${reason}`], 'copy it elsewhere if you trust it');
  }
  if (process.geteuid?.() === 0 && !isOfRoot(file)) {
    throw configError(
      [`${file}: other users than root can change this file, and root would run its programs`],
      ROOT_HINT,
    );
  }
  const bytes = await readOrKept(file).catch((error: NodeJS.ErrnoException) => {
    throw configError([`${file}: ${whyUnreadable(error)}`], 'name the right file with -c FILE or $AGENT_CONFIG');
  });
  if (bytes.length > MAX_BYTES) throw configError([`${file}: the file is larger than ${MAX_BYTES} bytes`]);
  if (!isUtf8(bytes)) throw configError([`${file}: the file is not UTF-8 text`], 'save it as UTF-8');
  return bytes.toString().replace(/^\ufeff/, '');
}

const ROOT_HINT = 'run the agent as the user of the file, or make root the owner of the file and its directories';
/** Larger ones take a minute to read. */
const MAX_BYTES = 1024 * 1024;

/** Itself, if it cannot be followed: its reader reports that. */
function realOf(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}

/** At once: a thread takes longer, and its module longer to load. */
async function readOrKept(file: string): Promise<Buffer> {
  return keptFile(file) ?? readFileSync(file);
}

function whyUnreadable(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'there is no such file';
    case 'EISDIR':
      return 'this is a directory, not a file';
    case 'EACCES':
    case 'EPERM':
      return 'no right to read this file';
    default:
      return `the file cannot be read (${error.code ?? 'unknown error'})`;
  }
}

/** Reads and checks the PEM files of `service.tls`. Rejects with one `config` error that names each bad file. */
export async function loadTls(config: Config) {
  const { caFile, certFile, keyFile } = config.service.tls;
  const problems: string[] = [];
  const { createPrivateKey, X509Certificate } = await import('node:crypto');
  const read = async (key: string, file: string | null, check: (pem: Buffer) => unknown) => {
    if (file === null) return undefined;
    const report = (text: string) => problems.push(`${config.file}: service.tls.${key}: ${file}: ${text}`);
    const pem = await readOrKept(file).catch((error: NodeJS.ErrnoException) => void report(whyUnreadable(error)));
    try {
      if (pem !== undefined) check(pem);
    } catch {
      report(`expected ${key === 'keyFile' ? 'a private key without a passphrase' : 'certificates'} in PEM format`);
    }
    return pem;
  };
  // Not in DER, which the check of a connection would not use.
  const requireCertificates = (pem: Buffer) => {
    if (!pem.includes('-----BEGIN ')) throw new Error('not PEM');
    return new X509Certificate(pem);
  };
  const ca = await read('caFile', caFile, requireCertificates);
  const cert = await read('certFile', certFile, requireCertificates);
  const key = await read('keyFile', keyFile, (pem) => createPrivateKey(pem));
  const areOne = (pem: Buffer, own: Buffer) => new X509Certificate(pem).checkPrivateKey(createPrivateKey(own));
  if (problems.length === 0 && cert !== undefined && key !== undefined && !areOne(cert, key))
    problems.push(
      `${config.file}: service.tls: the key in ${keyFile} does not belong to the certificate in ${certFile}`,
    );
  if (problems.length > 0) throw configError(problems, 'mend the section service.tls or the files it names');
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

const SYSTEM_FILE = '/etc/agent/config.yaml';

export interface ConfigSearch {
  readonly explicit: string | undefined;
  readonly env: Environment;
  readonly cwd: string;
  readonly systemFile?: string;
}

/**
 * The absolute path of the configuration file: that of `-c`, else of `$AGENT_CONFIG`, else that of the user, else
 * `systemFile`. Not `config.yaml` of the working directory: it names programs to run, and may be a result of a job.
 * @throws JobtailError config, if there is none
 */
export function findConfig({ explicit, env, cwd, systemFile = SYSTEM_FILE }: ConfigSearch): string {
  const named = explicit ?? (env['AGENT_CONFIG'] || undefined);
  if (named !== undefined) return resolve(cwd, named);
  const usual = [userConfig(env) ?? [], systemFile].flat();
  const found = usual.find(mayExist);
  if (found !== undefined) return found;
  const where = usual.join(', ');
  throw new JobtailError('config', `there is no configuration file: no -c, no $AGENT_CONFIG, and nothing at ${where}`, {
    hint: mayExist(resolve(cwd, 'config.yaml'))
      ? './config.yaml is used only by name: add -c config.yaml, or set $AGENT_CONFIG to its path'
      : 'run agent init, which asks for the settings and writes one, or name yours with -c FILE',
  });
}

/** A directory of the user for files of a kind, as `$XDG_CONFIG_HOME`; undefined without a home. */
export function userDirectory(env: Environment, variable: string, usual: string): string | undefined {
  const { [variable]: named = '', HOME: home = '' } = env;
  if (isAbsolute(named)) return named;
  return isAbsolute(home) ? join(home, usual) : undefined;
}

/** Undefined without a home. */
export function userConfig(env: Environment): string | undefined {
  const base = userDirectory(env, 'XDG_CONFIG_HOME', '.config');
  return base && join(base, 'jobtail', 'config.yaml');
}

/** A file that cannot be read gets its own error message later. */
function mayExist(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOTDIR';
  }
}

type KeyPath = readonly PropertyKey[];

function problemsOf({ path: steps, type, message, input }: v.BaseIssue<unknown>, yaml: YamlText): PlacedProblem[] {
  const path = (steps ?? []).map(({ key }) => key as PropertyKey);
  if (type === 'strict_object') {
    // Of a section, only the first unknown key is an issue; its message lists the known ones.
    const known = message.split(', ');
    const unknown = Object.keys(steps?.at(-1)?.input as object).filter((key) => !known.includes(key));
    return unknown.map((key) => {
      const at = [...path.slice(0, -1), key];
      return { position: yaml.positionOf(at, 'key'), text: `${pathText(at)}: ${unknownKey(key, known)}` };
    });
  }
  const found = (type.startsWith('raw_') ? input : undefined) ?? describe(path, yaml.value);
  const text = `expected ${message}, found ${String(found)}`;
  return [{ position: yaml.positionOf(path, 'value'), text: path.length === 0 ? text : `${pathText(path)}: ${text}` }];
}

/** For people: `watch[0].job`. */
function pathText(path: KeyPath): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      const key = keyText(String(step));
      return index === 0 ? key : `.${key}`;
    })
    .join('');
}

const SECRET_WORDS =
  /^(pass|pas+wor[dt]|passwd|pwd|passphrase|(access|bearer)?tokens?|secrets?|sessioncodes?|credentials?)$/;
/** Addresses of webhooks and words of commands may be secrets. */
const SECRET_PATHS =
  /^auth$|^(?:notify|fleet)\b|^service\.proxy|(^|\.)auth\.(password|token|sessionCode)(File|Command|Credential)|passw|secret/i;

/** Keys that are gone, and what replaces them. */
const REMOVED: ReadonlyMap<string, string> = new Map([
  [
    'contentEncoding',
    'removed: text counts as UTF-8, and live files of a server that decodes otherwise come by raw downloads; remove the key',
  ],
  ['mostJobs', 'renamed: write maxJobs'],
]);

function unknownKey(key: string, known: readonly string[]): string {
  const word = key.toLowerCase().replaceAll(/[^a-z]/g, '');
  if (SECRET_WORDS.test(word)) {
    return (
      'expected no secret in this file; write it to a file of its own, readable only for the user of the agent, and ' +
      'name that file: passwordFile, tokenFile or sessionCodeFile (or ...Command, ...Credential) in the section auth'
    );
  }
  const removed = REMOVED.get(key);
  if (removed !== undefined) return removed;
  const near = nearest(key, known);
  return near === undefined ? `unknown key, expected one of ${known.join(', ')}` : `unknown key, did you mean ${near}?`;
}

/** The most similar known key; ignores case, `_`, `-` and a missing end. */
function nearest(word: string, known: readonly string[]): string | undefined {
  // Longer words are similar to no key, and the cost grows with the product of the lengths.
  if (word.length > 40) return undefined;
  const ranked = known
    .map((candidate) => ({ candidate, letters: distance(plain(word), plain(candidate)) }))
    .filter(
      ({ candidate, letters }) =>
        letters <= Math.max(1, Math.floor(candidate.length / 3)) || isBeginning(plain(word), plain(candidate)),
    )
    .sort((a, b) => a.letters - b.letters);
  return ranked[0]?.candidate;
}

const plain = (word: string) => word.toLowerCase().replaceAll(/[_-]/g, '');

const isBeginning = (a: string, b: string) => Math.min(a.length, b.length) >= 4 && (a.startsWith(b) || b.startsWith(a));

function describe(path: KeyPath, root: unknown): string {
  const found = path.reduce<unknown>((value, step) => {
    const isInner = typeof value === 'object' && value !== null && Object.hasOwn(value, step);
    return isInner ? (value as Record<PropertyKey, unknown>)[step] : undefined;
  }, root);
  if (found === undefined) return 'nothing';
  if (found === null) return 'nothing (null)';
  if (Array.isArray(found)) return found.length === 0 ? 'an empty list' : 'a list';
  if (typeof found === 'object') return 'a section';
  const type = typeof found === 'string' ? 'text' : typeof found === 'boolean' ? 'boolean' : 'number';
  if (path.length === 0 || SECRET_PATHS.test(pathText(path))) return `a ${type} (not shown)`;
  return `${typeof found === 'string' ? quoted(found) : String(found)} (${type})`;
}

const cut = (text: string, length: number) => (text.length > length ? `${text.slice(0, length)}...` : text);

/** In quotes, cut, safe on a terminal, and without the credentials of an address. */
function quoted(text: string): string {
  const shown = text.replace(/\/\/.*@/, '//***@').replaceAll(/(pass[a-z]*|secret|token)=[^&]*/gi, '$1=***');
  return printable(JSON.stringify(cut(shown, 80)));
}

/** An unknown key is shown only if it is safe (`{password:x}` in YAML is the key `password:x`). */
function keyText(key: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_-]*$/.test(key)) return cut(key, 40);
  const secret = /^["']?[A-Za-z_-]*(pass|token|secret|code|credential)[A-Za-z_-]*/i.exec(key);
  return secret === null ? `"${printable(cut(key.replace(/:.*/s, ':...'), 40))}"` : `"${secret[0]}..."`;
}
