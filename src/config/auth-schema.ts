/**
 * The section `auth`: how to sign in, where the secret of the method is read from, and the pattern of a lost session.
 */
import vm from 'node:vm';
import type * as z from 'zod';
import {
  API_KEY,
  AUTH_METHODS,
  type AuthMethod,
  type AuthSettings,
  SECRET_NAMES,
  type SecretName,
  type SecretSource,
  secretNameOf,
} from '../auth.ts';
import { parseLong } from '../job.ts';
import { command, duration, EVEN_IF_OTHERS_FAIL, id, oneOf, orNull, path, section, slashed, text } from './values.ts';

const METHODS = [...AUTH_METHODS, API_KEY] as const;
const SOURCES = ['File', 'Command', 'Credential'] as const;

const keysOf = (name: SecretName) => SOURCES.map((source) => `${name}${source}` as const);
const SECRET_KEYS = SECRET_NAMES.flatMap(keysOf);

export function authSection(directory: string) {
  const urlPart = (expected: string) => text(expected, (found) => !/[\s?#]/.test(found));
  const file = path(directory).optional();
  const argv = command(directory).optional();
  const credential = text('the name of a systemd credential', (found) => !/^\.{1,2}$|\//.test(found)).optional();
  return section({
    method: oneOf(METHODS).prefault('password'),
    username: text().optional(),
    projectId: id('the id of a project', parseLong).optional(),
    path: orNull(urlPart('a path such as /service/UserAndLimitationManagement')),
    operation: orNull(urlPart('the name of an operation')),
    sessionCodeField: orNull(text()),
    sessionFaultPattern: orNull(text(QUICK_EXPRESSION, isQuickExpression)),
    commandTimeoutSeconds: duration('seconds', 3600).prefault(30),
    passwordFile: file,
    passwordCommand: argv,
    passwordCredential: credential,
    tokenFile: file,
    tokenCommand: argv,
    tokenCredential: credential,
    sessionCodeFile: file,
    sessionCodeCommand: argv,
    sessionCodeCredential: credential,
  })
    .superRefine(checkMethod, EVEN_IF_OTHERS_FAIL)
    .transform((keys): AuthSettings => {
      const { method, username = '', projectId = '', sessionCodeField, sessionFaultPattern, operation } = keys;
      const secret = secretOf(keys, keys.commandTimeoutSeconds);
      const rest = {
        secret,
        operation,
        sessionCodeField,
        sessionFaultPattern,
        path: keys.path === null ? null : slashed(keys.path),
      };
      if (method === 'session-code') return { ...rest, method };
      return method === 'cloud-platform' ? { ...rest, method, username, projectId } : { ...rest, method, username };
    });
}

type AuthKeys = {
  readonly method: AuthMethod;
  readonly username?: string | undefined;
  readonly projectId?: string | undefined;
} & { readonly [Key in `${SecretName}File` | `${SecretName}Credential`]?: string | undefined } & {
  readonly [Key in `${SecretName}Command`]?: readonly string[] | undefined;
};

export const QUICK_EXPRESSION = 'a regular expression that is quick for any text (no repetition inside of another one)';

/** Called with the readable part of the section, even after errors. */
function checkMethod(keys: AuthKeys, context: z.core.$RefinementCtx<unknown>): void {
  const method = METHODS.find((known) => known === keys.method);
  if (method === undefined) return;
  const report = (message: string, key?: string, found?: string) =>
    context.addIssue({ code: 'custom', path: key === undefined ? [] : [key], message, params: { found } });

  if (keys.username === undefined && method !== 'session-code') report('the name of the user', 'username');
  if (keys.projectId === undefined && method === 'cloud-platform') {
    report('the id of the project, which the method cloud-platform sends', 'projectId');
  }
  if (keys.projectId !== undefined && method !== 'cloud-platform') {
    report(`no such key with the method ${method} (only cloud-platform sends a project)`, 'projectId');
  }

  const fitting: readonly string[] = keysOf(secretNameOf(method));
  const given = SECRET_KEYS.filter((key) => keys[key] !== undefined);
  for (const key of given.filter((other) => !fitting.includes(other))) {
    report(`no such key with the method ${method} (its secret is one of ${fitting.join(', ')})`, key);
  }
  const sources = given.filter((key) => fitting.includes(key));
  if (sources.length !== 1) {
    const found = sources.length === 0 ? 'none of them' : sources.join(' and ');
    report(`exactly one of ${fitting.join(', ')} for the method ${method}`, undefined, found);
  }
}

function secretOf(keys: AuthKeys, timeoutMs: number): SecretSource {
  const name = secretNameOf(keys.method);
  const file = keys[`${name}File`];
  const argv = keys[`${name}Command`];
  if (file !== undefined) return { kind: 'file', path: file };
  if (argv !== undefined) return { kind: 'command', argv, timeoutMs };
  return { kind: 'credential', name: keys[`${name}Credential`] ?? '' };
}

/** Characters of a fault that are matched (src/remote/refusals.ts). */
const FAULT_CHARACTERS = 2048;

/** Much more than a quick expression needs: a busy machine may delay the process. */
const TRIAL_MS = 2_000;
const USE_MS = 250;
const MAX_TEXTS = 50;

const MATCHES = 'texts.filter((text) => new RegExp(pattern, flags).test(text)).length > 0';

/** Undefined if the match takes too long. @throws SyntaxError if the pattern is none */
export function matchesInTime(pattern: string, words: string): boolean | undefined {
  return matchesAny(pattern, [words], USE_MS);
}

/** Whether a pattern is a valid regular expression that is fast on texts made of its own parts. */
export function isQuickExpression(pattern: string, flags = 'i'): boolean {
  const pieces = new Set(['a', '0', ' ', ...(pattern.match(/[\p{L}\p{N} ]+/gu) ?? []), ...pattern]);
  // Repeated, with an end that is not in the pattern: the slowest way to fail.
  const texts = [...pieces]
    .slice(0, MAX_TEXTS)
    .map((piece) => `${piece.repeat(FAULT_CHARACTERS / piece.length)}\u0000`);
  try {
    return matchesAny(pattern, texts, TRIAL_MS, flags) !== undefined;
  } catch {
    return false;
  }
}

function matchesAny(pattern: string, texts: readonly string[], timeout: number, flags = 'i'): boolean | undefined {
  try {
    return vm.runInNewContext(MATCHES, { pattern, texts, flags }, { timeout }) === true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    return undefined;
  }
}
