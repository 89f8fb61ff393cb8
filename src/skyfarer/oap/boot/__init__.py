"""From application.yml to running modules.

    application.yml → `config` chooses providers and binds their configuration (`settings`)
                    → `catalog` names and imports their constructors
                    → `order` puts them into the order in which they can start

Reading and checking a configuration imports neither Spark nor a database, so a mistake is told in
a fraction of a second. This room starts nothing itself and knows nothing of what providers do.
"""
