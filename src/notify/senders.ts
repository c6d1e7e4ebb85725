/** Sends one event: to a program on its standard input, to an address by POST, or as mail. */
import { createHmac } from 'node:crypto';
import fs from 'node:fs';
import { JobtailError } from '../errors.ts';
import type { NotifyEvent } from '../notification.ts';
import { printable } from '../printable.ts';
import { type Secrets, safeText } from '../redact.ts';
import { readBeginning } from '../remote/http/http-client.ts';
import { environmentWith, runProgram } from '../system/program.ts';
import { Secret } from '../system/secret.ts';
import type { NotifyHttp } from './http.ts';
import type { Rule } from './rules.ts';

const LIMIT_MS = 30_000;
/** HMAC-SHA256 of the body in hexadecimal digits. */
export const SIGNATURE_HEADER = 'x-jobtail-signature-256';
const SENDMAIL = ['/usr/sbin/sendmail', '/usr/lib/sendmail'];
/** Shorter parts of an address are words. */
const MIN_SECRET_CHARACTERS = 8;
const MAX_ANSWER_BYTES = 1_024;

export interface SendersOptions {
  readonly http: Pick<NotifyHttp, 'request'>;
  /** The `source` of CloudEvents. */
  readonly source: string;
  readonly secrets: Secrets;
}

/** Resolves when the event was received. @throws JobtailError, without a secret or a path of an address */
export async function send(
  rule: Rule,
  event: NotifyEvent,
  options: SendersOptions,
  signal: AbortSignal,
): Promise<void> {
  const { command, commandEnvironment, url, mail } = rule.settings;
  const json = Buffer.from(`${JSON.stringify(event)}\n`);
  const given = { input: json, environment: commandEnvironment, secrets: options.secrets, signal };
  if (command !== null) await run(command[0] ?? '', command.slice(1), given);
  else if (url !== null) await post(rule, url, event, options, signal);
  else await sendMail(mail ?? '', event, options.secrets, signal);
}

interface Given {
  readonly input: Buffer;
  readonly environment?: readonly string[] | undefined;
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
}

async function run(
  command: string,
  args: readonly string[],
  { input, environment, secrets, signal }: Given,
): Promise<void> {
  const limit = { totalMs: LIMIT_MS };
  const ended = await runProgram({ command, args, env: environmentWith(environment), input, limit, signal });
  const { code, killedBy, stderr } = ended;
  if (code === 0) return;
  const how = killedBy === null ? `exit code ${code}` : `killed by ${killedBy}`;
  const last = secrets.safeText(stderr.trim().split('\n').at(-1) ?? '');
  throw new JobtailError('local-io', `${command}: ${how}${last === '' ? '' : `: ${last}`}`);
}

/** @throws JobtailError local-io */
export function signingKey(path: string, signal: AbortSignal): Promise<string> {
  const source = { kind: 'file', path } as const;
  return new Secret({ source, name: 'secret of a notification', code: 'local-io', env: {} }).read(signal);
}

/** CloudEvents 1.0, structured: the event is `data`. */
async function post(
  { settings, target }: Rule,
  url: string,
  event: NotifyEvent,
  { http, source, secrets: known }: SendersOptions,
  signal: AbortSignal,
): Promise<void> {
  const { id, type, time, jobId } = event;
  const subject = jobId === undefined ? {} : { subject: `job/${jobId}` };
  const envelope = { specversion: '1.0', id, source, type, time, ...subject, datacontenttype: 'application/json' };
  const body = Buffer.from(JSON.stringify({ ...envelope, data: event }));
  const secrets: string[] = [];
  const headers: Record<string, string> = { 'content-type': 'application/cloudevents+json; charset=utf-8' };
  if (settings.secretFile !== null) {
    const key = await signingKey(settings.secretFile, signal);
    secrets.push(key.toString());
    headers[SIGNATURE_HEADER] = `sha256=${createHmac('sha256', key).update(body).digest('hex')}`;
  }
  const answer = await http.request({ method: 'POST', url, headers, body, signal, takesAnyBody: true }, settings);
  // Whatever the body is: the status decides.
  const bytes = await readBeginning(answer, MAX_ANSWER_BYTES).catch(() => Buffer.alloc(0));
  if (answer.status >= 200 && answer.status < 300) return;
  const words = wordsOf(bytes, known, [...secrets, ...new URL(url).pathname.split('/'), new URL(url).search.slice(1)]);
  throw new JobtailError('http-status', `${target} answers with HTTP status ${answer.status}${words}`, {
    ...(answer.retryAfterMs === undefined ? {} : { retryAfterMs: answer.retryAfterMs }),
  });
}

/** The words of a refusal, if they are text, without what may be a secret. */
function wordsOf(bytes: Buffer, known: Secrets, secrets: readonly string[]): string {
  const own = secrets.filter(({ length }) => length >= MIN_SECRET_CHARACTERS);
  const text = bytes.toString();
  const words = text.includes('\ufffd') ? '' : known.safeText(safeText(text, own));
  return words === '' ? '' : `: ${words}`;
}

async function sendMail(address: string, event: NotifyEvent, secrets: Secrets, signal: AbortSignal): Promise<void> {
  const program = SENDMAIL.find((file) => fs.existsSync(file));
  if (program === undefined)
    throw new JobtailError('local-io', `there is no ${SENDMAIL[0]}`, {
      hint: 'install a mail server, or use command or url',
    });
  await run(program, ['-i', '--', address], { input: Buffer.from(mailText(address, event)), secrets, signal });
}

/** Headers contain only digits of a job, words of this program, and the digits of an id. */
export function mailText(address: string, event: NotifyEvent): string {
  const { id, type, jobId, count } = event;
  const times = count > 1 ? ` (${count} times)` : '';
  const subject = `[jobtail] ${jobId === undefined ? '' : `job ${jobId} `}${type}${times}`;
  const fields = Object.entries(event).map(([name, value]) => `${name}: ${printable(String(value))}`);
  const headers = [
    `To: ${address}`,
    `Subject: ${subject}`,
    `Message-ID: <${id.replaceAll(/[^0-9A-Za-z-]/g, '')}@jobtail>`,
    'MIME-Version: 1.0',
  ];
  const content = [
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: base64',
    'Auto-Submitted: auto-generated',
  ];
  const body = Buffer.from(`${fields.join('\n')}\n`)
    .toString('base64')
    .replaceAll(/.{1,76}/g, '$&\n')
    .trimEnd();
  return `${[...headers, ...content].join('\n')}\n\n${body}\n`;
}
