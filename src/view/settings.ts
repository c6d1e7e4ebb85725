/** What the view has to know; it crosses to its thread as a copy. */
export interface ViewSettings {
  readonly mirrorDirectory: string;
  readonly stateDirectory: string;
  readonly service: {
    /** By which its habits are kept. */
    readonly address: string;
    readonly protocol: 'soap' | 'rest';
    readonly tellsOfJobs: boolean;
    readonly concurrency: number;
    readonly requestsPerMinute: number | null;
  };
  /** An address of this machine, or the path of a Unix socket. */
  readonly listen: { readonly host: string; readonly port: number } | { readonly path: string };
  /** Where a reverse proxy shows it, ending in a slash; null if nothing stands before it. */
  readonly publicUrl: string | null;
  /** Null: `view-token` in the state directory. */
  readonly tokenFile: string | null;
  /** The version of the program. */
  readonly program: string;
  /** The agent of this state directory, if this is its process. */
  readonly agentPid: number | null;
}
