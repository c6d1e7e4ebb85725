/** What the engine needs of this machine. */
import type { ErrorCode } from '../../errors.ts';

export interface Reserve {
  /** @throws JobtailError disk-full if less than the reserve would be left after writing `bytes` more */
  require(bytes: number): Promise<void>;
}

type LogFields = Readonly<Record<string, unknown>> & { readonly code?: ErrorCode | undefined };

/** The log of the agent. Fields have fixed names and values without secrets. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}
