"""Log files become records of kind LOG: every line once, whatever happens to file or process.

    globs ─▶ roster ─▶ collector (one per file) ─▶ lines ─▶ LogData ─▶ append
             rotation   offset, look back          events     │          │
                                    positions: "next I append these" ◀──┘

How a line is neither lost nor repeated across SIGKILL: before each append the fetcher writes down
which bytes of which file are about to become which sequences (`positions`). The queue says after a
restart how many records it has, so each of these intents came true wholly, in part or not at all,
and the files are read on from exactly there. It costs one small write per block and no wait.

How a file is told from another: by device and inode, by its first bytes, and by the bytes before
the place it was read to, which are read again with every block. So a renamed file is still the
same one, an inode used again is not, and a file cut to nothing is noticed however fast it grew
again; its copy, if there is one, is then read from where the file itself was.

What is not promised: lines written into a file and cut off or deleted before anybody looked.
"""
