// SPDX-FileCopyrightText: The zanon_net authors
// SPDX-License-Identifier: Apache-2.0

package zanon.flink;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.Optional;
import java.util.TreeSet;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.assigners.FileSplitAssigner;

/**
 * Hands out files PROBE/SHARD-SEQUENCE.znv by their sequence, then by their shard: the files of all
 * probes for a shard follow each other, so that no shard has to hold much of one probe while it
 * waits for another.
 */
public final class SequenceOrder implements FileSplitAssigner {
    private static final Comparator<FileSourceSplit> ORDER =
            Comparator.comparing(SequenceOrder::sequence)
                    .thenComparing(split -> split.path().getName())
                    .thenComparing(split -> split.path().getPath())
                    .thenComparing(FileSourceSplit::splitId);

    private final TreeSet<FileSourceSplit> waiting = new TreeSet<>(ORDER);

    private SequenceOrder(Collection<FileSourceSplit> splits) {
        waiting.addAll(splits);
    }

    @Override
    public Optional<FileSourceSplit> getNext(String hostname) {
        return Optional.ofNullable(waiting.pollFirst());
    }

    @Override
    public void addSplits(Collection<FileSourceSplit> splits) {
        waiting.addAll(splits);
    }

    @Override
    public Collection<FileSourceSplit> remainingSplits() {
        return new ArrayList<>(waiting);
    }

    private static String sequence(FileSourceSplit split) {
        String name = split.path().getName();
        return name.substring(name.lastIndexOf('-') + 1);
    }

    /** Makes the order anew on each start of a job. */
    public static final class Provider implements FileSplitAssigner.Provider {
        private static final long serialVersionUID = 1L;

        @Override
        public FileSplitAssigner create(Collection<FileSourceSplit> splits) {
            return new SequenceOrder(splits);
        }
    }
}
