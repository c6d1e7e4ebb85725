/** What the engine needs of this machine. */

export interface Reserve {
  /** @throws JobtailError disk-full if less than the reserve would be left after writing `bytes` more */
  require(bytes: number): Promise<void>;
}

/** The log of the agent. Fields have fixed names and values without secrets. */
export interface Log {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}
