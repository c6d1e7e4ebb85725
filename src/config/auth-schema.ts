/** The section `auth`: the sign-in, the source of its secret, and the pattern of a lost session. */
import vm from 'node:vm';
import * as v from 'valibot';
import { API_KEY, AUTH_METHODS, type AuthSettings, SECRET_NAMES, type SecretName, secretNameOf } from '../auth.ts';
import { parseLong } from '../job.ts';
import { processorMs } from '../system/clock.ts';
import {
  command,
  credentialName,
  duration,
  id,
  oneOf,
  orNull,
  path,
  refine,
  requireOne,
  section,
  slashed,
  text,
  transform,
  variableNames,
  withRule,
} from './values.ts';

const METHODS = [...AUTH_METHODS, API_KEY] as const;
const SOURCES = ['File', 'Command', 'Credential'] as const;

const keysOf = (name: SecretName) => SOURCES.map((source) => `${name}${source}` as const);
const SECRET_KEYS = SECRET_NAMES.flatMap(keysOf);

export function authSection(directory: string) {
  const urlPart = (expected: string) => text(expected, (found) => !/[\s?#]/.test(found));
  const file = v.optional(path(directory));
  const argv = v.optional(command(directory));
  const credential = v.optional(credentialName());
  const written = section({
    method: v.optional(oneOf(METHODS), 'password'),
    username: v.optional(text()),
    projectId: v.optional(id('the id of a project', parseLong)),
    path: orNull(urlPart('a path such as /service/UserAndLimitationManagement')),
    operation: orNull(urlPart('the name of an operation')),
    sessionCodeField: orNull(text()),
    sessionFaultPattern: orNull(expression()),
    commandTimeoutSeconds: v.optional(duration('seconds', 3600), 30),
    commandEnvironment: variableNames(),
    passwordFile: file,
    passwordCommand: argv,
    passwordCredential: credential,
    tokenFile: file,
    tokenCommand: argv,
    tokenCredential: credential,
    sessionCodeFile: file,
    sessionCodeCommand: argv,
    sessionCodeCredential: credential,
  });
  const checked = withRule(written, (keys, report) => {
    const method = METHODS.find((known) => known === keys.method);
    if (method === undefined) return;
    if (keys.username === undefined && method !== 'session-code') report('the name of the user', ['username']);
    if (keys.projectId === undefined && method === 'cloud-platform')
      report('the id of the project, which the method cloud-platform sends', ['projectId']);
    if (keys.projectId !== undefined && method !== 'cloud-platform')
      report(`no such key with the method ${method} (only cloud-platform sends a project)`, ['projectId']);

    const fitting: readonly string[] = keysOf(secretNameOf(method));
    const given = SECRET_KEYS.filter((key) => keys[key] !== undefined);
    for (const key of given.filter((other) => !fitting.includes(other)))
      report(`no such key with the method ${method} (its secret is one of ${fitting.join(', ')})`, [key]);
    const sources = given.filter((key) => fitting.includes(key));
    requireOne(fitting, sources, report, ` for the method ${method}`);
  });
  return transform(checked, (keys): AuthSettings => {
    const { method, username = '', projectId = '', sessionCodeField, sessionFaultPattern, operation } = keys;
    const name = secretNameOf(method);
    const [file, argv] = [keys[`${name}File`], keys[`${name}Command`]];
    const { commandTimeoutSeconds: timeoutMs, commandEnvironment: environment } = keys;
    const program = argv && ({ kind: 'command', argv, timeoutMs, ...(environment && { environment }) } as const);
    const credential = { kind: 'credential', name: keys[`${name}Credential`] ?? '' } as const;
    const secret = file === undefined ? (program ?? credential) : ({ kind: 'file', path: file } as const);
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

export const QUICK_EXPRESSION = 'a regular expression that is quick for any text (no repetition inside of another one)';

/** A text that is a regular expression; `accepts` may refuse more. */
export function expression(expected = QUICK_EXPRESSION, flags = 'i', accepts = (_found: string) => true) {
  const isOne = (found: string) => syntaxErrorOf(found, flags) === undefined;
  const reason = ({ input }: { readonly input: string }) =>
    `a valid regular expression (error: ${syntaxErrorOf(input, flags)})`;
  const parsed = v.config(v.pipe(text(expected), v.check(isOne, reason)), { abortPipeEarly: true });
  return refine(parsed, (found) => accepts(found) && isQuickExpression(found, flags), expected);
}

/** The reason alone: the pattern may be a secret. */
function syntaxErrorOf(pattern: string, flags: string): string | undefined {
  try {
    new RegExp(pattern, flags);
    return undefined;
  } catch (error) {
    return String(error).split(': ').at(-1)?.toLowerCase();
  }
}

/** Characters of a fault that are matched (src/remote/refusals.ts). */
const FAULT_CHARACTERS = 2048;

/** Much more than a quick expression needs. */
const TRIAL_MS = 500;
const USE_MS = 250;
const MAX_TEXTS = 50;
/** So often a limit is doubled, where the process did not get half of it. */
const MAX_DOUBLED = 4;

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

function matchesAny(pattern: string, texts: readonly string[], limitMs: number, flags = 'i'): boolean | undefined {
  for (let doubled = 0; doubled <= MAX_DOUBLED; doubled++) {
    const before = processorMs();
    try {
      return vm.runInNewContext(MATCHES, { pattern, texts, flags }, { timeout: limitMs * 2 ** doubled }) === true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      if (processorMs() - before >= limitMs / 2) return undefined;
    }
  }
  return undefined;
}
