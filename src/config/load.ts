/** Reads, parses and checks the configuration file, and the TLS files it names. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { JobtailError } from '../errors.ts';
import type { Config } from './config.ts';
import { pathText, problemsOf } from './problems.ts';
import { configSchema } from './schema.ts';
import { type PlacedProblem, readYaml } from './yaml.ts';

/**
 * The configuration in `path`, complete and checked. Rejects with one `config` error whose message has a line for
 * every problem: `file:line:column: key: expected ..., found ...`.
 */
export async function loadConfig(path: string): Promise<Config> {
  const file = resolve(path);
  const text = await readText(file);
  const yaml = readYaml(text);
  if (yaml.problems.length > 0) throw configError(linesOf(file, yaml.problems));
  if (yaml.value === null || yaml.value === undefined) {
    throw configError([`${file}: the file holds no configuration (it is empty, or all of it is comments)`]);
  }
  const result = configSchema(dirname(file)).safeParse(yaml.value);
  if (result.success) return { file, ...result.data };
  const problems = problemsOf(result.error.issues, yaml.value).map(({ path: keys, of, text: said }) => ({
    position: yaml.positionOf(keys, of),
    text: keys.length === 0 ? said : `${pathText(keys)}: ${said}`,
  }));
  throw configError(linesOf(file, problems));
}

/** A line for each problem, in the order of the file. */
function linesOf(file: string, problems: readonly PlacedProblem[]): string[] {
  return problems
    .toSorted((a, b) => a.position.line - b.position.line || a.position.column - b.position.column)
    .map(({ position, text }) => `${file}:${position.line}:${position.column}: ${text}`);
}

function configError(lines: readonly string[], hint = 'config.example.yaml explains every key'): JobtailError {
  return new JobtailError('config', lines.join('\n'), { hint });
}

async function readText(file: string): Promise<string> {
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw configError([`${file}: ${whyUnreadable(error)}`], 'name the right file with -c FILE or $AGENT_CONFIG');
  });
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw configError([`${file}: the file is not UTF-8 text`], 'save it as UTF-8');
  }
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

/**
 * Reads the PEM files of `service.tls` and checks that they can be used; what the configuration leaves out is left out
 * here too. Rejects with one `config` error that names each bad file.
 */
export async function loadTls(config: Config) {
  const { caFile, certFile, keyFile } = config.service.tls;
  const problems: string[] = [];
  const read = async (key: string, file: string | null, check: (pem: Buffer) => unknown) => {
    if (file === null) return undefined;
    const said = (text: string) => problems.push(`${config.file}: service.tls.${key}: ${file}: ${text}`);
    const pem = await readFile(file).catch((error: NodeJS.ErrnoException) => void said(whyUnreadable(error)));
    try {
      if (pem !== undefined) check(pem);
    } catch {
      said(`expected ${key === 'keyFile' ? 'a private key without a passphrase' : 'certificates'} in PEM format`);
    }
    return pem;
  };
  const ca = await read('caFile', caFile, (pem) => new X509Certificate(pem));
  const cert = await read('certFile', certFile, (pem) => new X509Certificate(pem));
  const key = await read('keyFile', keyFile, (pem) => createPrivateKey(pem));
  if (problems.length === 0 && cert !== undefined && key !== undefined && !fitTogether(cert, key)) {
    problems.push(
      `${config.file}: service.tls: the key in ${keyFile} does not belong to the certificate in ${certFile}`,
    );
  }
  if (problems.length > 0) throw configError(problems, 'mend the section service.tls or the files it names');
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

function fitTogether(cert: Buffer, key: Buffer): boolean {
  try {
    createSecureContext({ cert, key });
    return true;
  } catch {
    return false;
  }
}
