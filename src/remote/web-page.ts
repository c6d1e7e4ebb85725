/** Pages of HTML in the place of an answer: of proxies, of sign-in pages, of servers that are something else. */
import { JobtailError } from '../errors.ts';
import type { Secrets } from '../redact.ts';
import type { HttpAnswer } from './http/http-client.ts';

const MAX_TITLE_LENGTH = 100;

/** `head` is the beginning of the body. */
export function isWebPage({ contentType }: Pick<HttpAnswer, 'contentType'>, head: Buffer): boolean {
  if (contentType === 'text/html' || contentType === 'application/xhtml+xml') return true;
  return /^\s*<(?:!doctype\s+html|html)\b/i.test(head.toString('latin1', 0, 1024));
}

export function titleOf(head: Buffer): string {
  return /<title[^<>]{0,200}>([^<]{0,1000})/i.exec(head.toString('utf8', 0, 64 * 1024))?.[1]?.trim() ?? '';
}

/** The error for such a page where an answer should be; `urlKey` is the key of the configuration with the address. */
export function webPage(head: Buffer, urlKey: string, secrets: Secrets): JobtailError {
  const title = secrets.safeText(titleOf(head), MAX_TITLE_LENGTH);
  return new JobtailError('malformed', `the answer is a web page${title === '' ? '' : ` ("${title}")`}`, {
    hint: `a proxy or sign-in page stands in the way, or ${urlKey} is the address of something else`,
  });
}
