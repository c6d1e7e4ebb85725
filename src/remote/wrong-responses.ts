/** Responses that contain something other than what was requested. */
import { JobtailError } from '../errors.ts';

export function malformed(what: string): JobtailError {
  return new JobtailError('malformed', `the response is damaged: ${what}`, {
    hint: 'if the error persists, report it to the operator of the service or of the proxy in front of it',
  });
}

export function tooLarge(than: string): JobtailError {
  return new JobtailError('answer-too-large', `the response has ${than} besides the content of files`, {
    hint: 'request fewer files at once; if the error persists, check what the service sends',
  });
}

export function unexpected(what: string, hint: string): JobtailError {
  return new JobtailError('unexpected-answer', `the response is not for this request: ${what}`, { hint });
}

export function titleOf(page: string): string {
  return /<title[^<>]{0,200}>([^<]{0,1000})/i.exec(page.slice(0, 64 * 1024))?.[1]?.trim() ?? '';
}
