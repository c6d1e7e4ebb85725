/**
 * Who may ask: a page of this server, in a browser with a session. A name that somebody lets point here (DNS
 * rebinding) is none of its names; a page of somebody else is another origin.
 */
import { createHash } from 'node:crypto';
import net from 'node:net';
import type { ViewSettings } from '../settings.ts';

export interface Origins {
  readonly listen: ViewSettings['listen'];
  readonly publicUrl: string | null;
}

/**
 * Whether a request may name the server so: by a number, as `localhost`, by the name that it listens at, or by that of the
 * proxy before it. A number cannot be made to point elsewhere.
 */
export function isOwnHost(host: string | undefined, { listen, publicUrl }: Origins): boolean {
  const name = nameIn(host);
  if (name === undefined) return false;
  if (publicUrl !== null && name === new URL(publicUrl).hostname) return true;
  return (
    net.isIP(name.replace(/^\[(.*)\]$/, '$1')) > 0 ||
    name === 'localhost' ||
    ('host' in listen && name === listen.host.toLowerCase())
  );
}

/** Whether a request comes from a page of this server; programs and typed addresses name no origin. */
export function isOwnOrigin(origin: string | undefined, host: string | undefined, { publicUrl }: Origins): boolean {
  if (origin === undefined) return true;
  if (publicUrl !== null && origin === new URL(publicUrl).origin) return true;
  return host !== undefined && (origin === `http://${host}` || origin === `https://${host}`);
}

/** In lower case, without the port. */
function nameIn(host: string | undefined): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?$/.exec(host?.toLowerCase() ?? '')?.[1];
}

/** A browser sends a cookie to every port of a host: each server has its own name for it. */
export const cookieName = (place: number | string): string =>
  `jobtail-view-${typeof place === 'number' ? place : createHash('sha256').update(place).digest('hex').slice(0, 8)}`;

/** What the page may do: load its own files, ask its own server, and show what is previewed in a frame. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "font-src 'self'",
  "connect-src 'self'",
  "frame-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** What a preview may do: nothing but to look as it does. */
export const PREVIEW_POLICY =
  "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'";

/** Of every answer that says nothing else. */
export const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': PAGE_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'x-robots-tag': 'noindex',
};
