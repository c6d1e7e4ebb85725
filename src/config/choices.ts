/** What the configuration lets a person choose from; apart from the schema, for commands that offer it. */

export const SOAP_VERSIONS = ['1.1', '1.2'] as const;
export const AUTH_METHODS = ['openid', 'external-token', 'cloud-platform', 'password', 'session-code'] as const;
export const TRANSFER_WAYS = ['soap', 'direct', 'auto'] as const;
export const HOST_KEY_CHECKS = ['accept-new', 'strict'] as const;
export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug', 'trace'] as const;

/** How to sign in (docs/interface.md 4.2); `session-code` takes a ready code instead. */
export type AuthMethod = (typeof AUTH_METHODS)[number];
